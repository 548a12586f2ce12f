//! A file of policies that is applied again whenever it changes.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;

use super::Limiter;
use super::applied::{Applied, PutInForce};
use super::core::Core;
use crate::bounds::{FILE_BYTES, shown_names};
use crate::config::Policies;
use crate::error::Error;
use crate::observe::{UnappliedFileGauge, begin_metrics_of_files, log, opaque_debug};
use crate::system::home::RunningTask;
use crate::system::{Handle, beside_tasks, sleep};

/// The time between two readings.
const PAUSE: Duration = Duration::from_secs(1);

/// A version that has lost something is confirmed after this many equal readings, a second apart.
const READINGS_OF_LOSS: u32 = 10;

/// The result of the last change of a file.
type Latest = Result<Applied, Error>;

/// A file that a limiter [watches](Limiter::watch_file). Dropping this does not end the watching.
#[derive(Clone)]
pub struct FileWatch {
    latest: watch::Receiver<Latest>,
}

impl Limiter {
    /// Applies the policies of a file, and applies them again whenever the file changes.
    ///
    /// The file is read every second. A change counts when two readings in a row are equal, so that a file that is
    /// being written is not applied. Only the contents matter: the file may be replaced, and links may be swapped, as
    /// where a cluster mounts its configuration. If the file cannot be read, is mistaken or was emptied, the limits in
    /// force stay in force, the log has an error, and the metric `tallygate_unapplied_files` shows it.
    ///
    /// A file that was cut may still be valid, with fewer policies. So a version that lacks a policy of the one in
    /// force, or is only its beginning, is reported as an error, and applied once it has stayed unchanged for 10
    /// seconds. A file whose last line is `[end]` is known to be whole: it is applied at once, and may be empty. If
    /// that line is missing later, the file is refused.
    ///
    /// The calling thread does the first reading and its checks: for the longest file, that takes some tenths of a
    /// second. Call it at start-up, or in `tokio::task::spawn_blocking`. Later readings block no task.
    ///
    /// The file is watched as long as the limiter or a clone of it lives, even after the end of the runtime in which
    /// this is called.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is longer than 4 MiB, is no regular file, or is refused by [`Policies::from_toml`],
    /// [`Policies::require_not_empty`] or [`Limiter::apply`]. Or the limiter already watches a file, or there is no
    /// tokio runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tallygate::Limiter;
    /// # let path = std::env::temp_dir().join(format!("tallygate-watch-{}.toml", std::process::id()));
    /// # std::fs::write(&path, "[end]")?;
    ///
    /// let watch = Limiter::installed().watch_file(&path)?;
    /// watch.latest()?.require_known()?;
    /// # std::fs::remove_file(&path)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn watch_file(&self, path: impl Into<PathBuf>) -> Result<FileWatch, Error> {
        let path = path.into();
        let runtime = Handle::try_current()
            .map_err(|_| Error::new("`watch_file` needs a runtime of tokio; call it in an `async fn`"))?;
        let task = self.core.file_watch.begin().ok_or_else(|| {
            Error::new("`watch_file`: this limiter watches a file already; write all policies into one file")
        })?;
        let contents = read(&path);
        let in_force = Version::read(&path, &contents)?;
        let put = self.apply_silently(&in_force.policies).map_err(|mistakes| Error::of_file(&path, mistakes))?;
        let applied = put.reported(Some(&path));
        begin_metrics_of_files();
        let (latest, watch) = watch::channel(Ok(applied));
        let file = WatchedFile {
            path,
            readings: Readings::new(contents),
            in_force: Arc::new(in_force),
            is_held: false,
            is_untried: false,
            core: Arc::downgrade(&self.core),
            latest,
            gauge: UnappliedFileGauge::default(),
        };
        runtime.spawn(Box::pin(Watching(Some((file, task))).run()));
        Ok(FileWatch { latest: watch })
    }
}

impl FileWatch {
    /// Returns the policies that were applied when the file last changed, or why they were not applied.
    ///
    /// # Errors
    ///
    /// The file in its current state cannot be read, is mistaken, or may have been cut. The limits of its last good
    /// version are in force.
    pub fn latest(&self) -> Result<Applied, Error> {
        self.latest.borrow().clone()
    }

    /// Waits for the next change of the file, and returns its result, like [`latest`](Self::latest). `None` means that
    /// the file is no longer watched.
    pub async fn changed(&mut self) -> Option<Result<Applied, Error>> {
        self.latest.changed().await.ok()?;
        Some(self.latest.borrow_and_update().clone())
    }
}

opaque_debug!(FileWatch);

struct WatchedFile {
    path: PathBuf,
    readings: Readings,
    /// The version that was applied last.
    in_force: Arc<Version>,
    /// Whether the known version is held back because it has lost something.
    is_held: bool,
    /// Whether the known version has no outcome yet: the runtime may end before.
    is_untried: bool,
    core: Weak<Core>,
    latest: watch::Sender<Latest>,
    gauge: UnappliedFileGauge,
}

/// If its runtime ends before the limiter, the task continues on the thread of the limiter.
struct Watching(Option<(WatchedFile, RunningTask)>);

impl Watching {
    async fn run(mut self) {
        if let Some((file, _)) = &mut self.0 {
            file.watch().await;
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        if let Some(watched) = self.0.take()
            && let Some(core) = watched.0.core.upgrade()
            && let Ok(thread) = core.runtimes.thread()
        {
            thread.spawn(Box::pin(Self(Some(watched)).run()));
        }
    }
}

impl WatchedFile {
    /// Watches until the limiter is gone.
    async fn watch(&mut self) {
        loop {
            sleep(PAUSE).await;
            let path = self.path.clone();
            let Some(contents) = beside_tasks(move || read(&path)).await else { return };
            if self.core.strong_count() == 0 {
                return;
            }
            let is_confirmed = match self.readings.note(contents) {
                Reading::Changed => false,
                Reading::Known(_) if self.is_untried => false,
                Reading::Known(times) if self.is_held && times >= READINGS_OF_LOSS => true,
                Reading::Known(_) | Reading::Changing => continue,
            };
            self.is_untried = true;
            let Some(core) = self.core.upgrade() else { return };
            let attempt = VersionAttempt {
                limiter: Limiter { core },
                path: self.path.clone(),
                contents: self.readings.known.clone(),
                in_force: Arc::clone(&self.in_force),
                is_confirmed,
            };
            let Some(outcome) = beside_tasks(move || attempt.play()).await else { return };
            self.take(outcome);
        }
    }

    /// Notes the outcome of the known version.
    fn take(&mut self, outcome: VersionOutcome) {
        self.is_untried = false;
        self.is_held = matches!(outcome, VersionOutcome::Held(_));
        let latest = match outcome {
            VersionOutcome::InForce(put, version) => {
                self.in_force = version;
                Ok(put.reported(Some(&self.path)))
            }
            VersionOutcome::Held(error) | VersionOutcome::Refused(error) => Err(error),
        };
        latest.as_ref().err().into_iter().for_each(log::file_not_applied);
        self.gauge.set(usize::from(latest.is_err()));
        drop(self.gauge.change());
        self.latest.send_modify(|known| *known = latest);
    }
}

/// An attempt to apply the contents of a file. A long file takes long, so no task of the runtime does it.
struct VersionAttempt {
    limiter: Limiter,
    path: PathBuf,
    contents: Contents,
    in_force: Arc<Version>,
    is_confirmed: bool,
}

enum VersionOutcome {
    InForce(PutInForce, Arc<Version>),
    /// The version has lost something, and is applied once it is confirmed.
    Held(Error),
    Refused(Error),
}

impl VersionAttempt {
    /// Applies the version, unless it is mistaken, or has lost something and is not confirmed.
    fn play(self) -> VersionOutcome {
        let version = match Version::read(&self.path, &self.contents) {
            Ok(version) => version,
            Err(error) => return VersionOutcome::Refused(error),
        };
        if let Some(loss) = self.in_force.loss_of(&version).filter(|_| !self.is_confirmed) {
            let error = Error::of_file(&self.path, Error::new(loss.mistake()));
            return if loss == Loss::End { VersionOutcome::Refused(error) } else { VersionOutcome::Held(error) };
        }
        match self.limiter.apply_silently(&version.policies) {
            Ok(put) => VersionOutcome::InForce(put, Arc::new(version)),
            Err(mistakes) => VersionOutcome::Refused(Error::of_file(&self.path, mistakes)),
        }
    }
}

/// The latest readings of a file.
struct Readings {
    /// The contents that were applied, held back or refused last.
    known: Contents,
    /// The number of readings since then, if all were equal.
    unchanged: u32,
    /// The contents that the last reading found, if they differ from the known ones.
    changing: Option<Contents>,
}

/// A reading, compared with earlier ones.
#[derive(Debug, PartialEq, Eq)]
enum Reading {
    /// The reading equals the known contents, as this many readings in a row do.
    Known(u32),
    /// The reading differs from the one before: the file may be in the middle of a change.
    Changing,
    /// The file has changed: two equal readings in a row differ from the known contents.
    Changed,
}

impl Readings {
    fn new(known: Contents) -> Self {
        Self { known, unchanged: 0, changing: None }
    }

    fn note(&mut self, contents: Contents) -> Reading {
        let earlier = self.changing.take();
        if contents == self.known {
            self.unchanged = self.unchanged.saturating_add(1);
            return Reading::Known(self.unchanged);
        }
        self.unchanged = 0;
        if earlier.as_ref() == Some(&contents) {
            self.known = contents;
            Reading::Changed
        } else {
            self.changing = Some(contents);
            Reading::Changing
        }
    }
}

/// The text of a file, or why it cannot be read.
type Contents = Result<String, (io::ErrorKind, String)>;

fn read(path: &Path) -> Contents {
    text(path).map_err(|error| (error.kind(), error.to_string()))
}

fn text(path: &Path) -> io::Result<String> {
    // Opening a pipe waits for a writer, who may never come.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > FILE_BYTES {
        let message = format!("it is longer than {} MiB", FILE_BYTES >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8; save it as UTF-8"))
}

/// A version of a file that was applied.
struct Version {
    text: String,
    policies: Policies,
}

#[derive(Debug, PartialEq, Eq)]
enum Loss {
    /// The line `[end]`, which the version in force has: the file is certainly not whole.
    End,
    /// Something that may have been removed on purpose, in words.
    Parts(String),
}

impl Version {
    fn read(path: &Path, contents: &Contents) -> Result<Self, Error> {
        let text = contents.clone().map_err(|(kind, text)| Error::of_file(path, io::Error::new(kind, text)))?;
        let policies = Policies::from_toml(&text).and_then(|policies| policies.require_not_empty().map(|()| policies));
        Ok(Self { policies: policies.map_err(|mistakes| Error::of_file(path, mistakes))?, text })
    }

    /// Returns what `other` lacks, unless its last line says that it is whole.
    fn loss_of(&self, other: &Self) -> Option<Loss> {
        if other.policies.has_end() {
            return None;
        }
        if self.policies.has_end() {
            return Some(Loss::End);
        }
        let lost: Vec<_> = self.policies.names_not_in(&other.policies).collect();
        let is_beginning =
            self.text.trim_end().strip_prefix(other.text.trim_end()).is_some_and(|rest| !rest.is_empty());
        match lost.as_slice() {
            [] if is_beginning => Some(Loss::Parts("what stood at its end".to_owned())),
            [] => None,
            [_] => Some(Loss::Parts(format!("the policy {}", shown_names(&lost)))),
            _ => Some(Loss::Parts(format!("the policies {}", shown_names(&lost)))),
        }
    }
}

impl Loss {
    /// Returns the mistake of a version that has lost this.
    fn mistake(&self) -> String {
        match self {
            Self::End => "it was cut, as its last line `[end]` is missing; write it again".to_owned(),
            Self::Parts(parts) => format!(
                "it no longer has {parts}; if it was not cut, it is applied once it has been so for {READINGS_OF_LOSS} seconds, \
                 or at once with `[end]` as its last line"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
