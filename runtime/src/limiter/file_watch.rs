//! A file of policies that is applied again whenever it changes.

mod loss;
mod readings;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;

use self::loss::{Loss, Version};
use self::readings::{Contents, Reading, Readings};
use super::Limiter;
use super::applied::{Applied, PutInForce};
use super::core::Core;
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
        let contents = readings::read(&path);
        let in_force = version(&path, &contents)?;
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
            let Some(contents) = beside_tasks(move || readings::read(&path)).await else { return };
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
        let version = match version(&self.path, &self.contents) {
            Ok(version) => version,
            Err(error) => return VersionOutcome::Refused(error),
        };
        if let Some(loss) = self.in_force.loss_of(&version).filter(|_| !self.is_confirmed) {
            let error = Error::of_file(&self.path, Error::new(mistake(&loss)));
            return if loss == Loss::End { VersionOutcome::Refused(error) } else { VersionOutcome::Held(error) };
        }
        match self.limiter.apply_silently(&version.policies) {
            Ok(put) => VersionOutcome::InForce(put, Arc::new(version)),
            Err(mistakes) => VersionOutcome::Refused(Error::of_file(&self.path, mistakes)),
        }
    }
}

fn version(path: &Path, contents: &Contents) -> Result<Version, Error> {
    let text = contents.clone().map_err(|(kind, text)| Error::of_file(path, io::Error::new(kind, text)))?;
    let policies = Policies::from_toml(&text).and_then(|policies| policies.require_not_empty().map(|()| policies));
    Ok(Version { policies: policies.map_err(|mistakes| Error::of_file(path, mistakes))?, text })
}

/// Returns the mistake of a version that has lost something.
fn mistake(loss: &Loss) -> String {
    match loss {
        Loss::End => "it was cut, as its last line `[end]` is missing; write it again".to_owned(),
        Loss::Parts(parts) => format!(
            "it no longer has {parts}; if it was not cut, it is applied once it has been so for {READINGS_OF_LOSS} seconds, or at \
             once with `[end]` as its last line"
        ),
    }
}
