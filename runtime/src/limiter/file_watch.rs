//! A file of policies that is applied again whenever it changes.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;

use super::Limiter;
use super::applied::Applied;
use super::background::RunningTask;
use super::core::Core;
use crate::config::Policies;
use crate::error::Error;
use crate::observe::{log, opaque_debug};
use crate::system::{Handle, beside_tasks, sleep};

/// The time between two readings.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest file that is read.
const MOST_BYTES: u64 = 4 << 20;

/// What a file made of a limiter when it changed last.
type Latest = Result<Applied, Error>;

/// A file that a limiter [watches](Limiter::watch_file). To drop this does not end the watching.
#[derive(Clone)]
pub struct FileWatch {
    latest: watch::Receiver<Latest>,
}

impl Limiter {
    /// Applies the policies of a file, and applies them again whenever the file changes.
    ///
    /// The file is read every second. A change counts when two readings in a row are equal, so that a file that is being
    /// written is not applied. Only the contents matter: links may be swapped, as where a cluster mounts its configuration, and
    /// the file may be replaced. If it cannot be read or is mistaken, the limits in force stay so, and the log has an error.
    /// It is watched as long as the limiter or a clone of it lives, and the runtime in which this is called.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is longer than 4 MiB, or is refused as by [`Policies::from_toml`] and [`Limiter::apply`]. Or the
    /// limiter watches a file already, or there is no runtime of tokio.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tallygate::Limiter;
    /// # let path = std::env::temp_dir().join(format!("tallygate-watch-{}.toml", std::process::id()));
    /// # std::fs::write(&path, "")?;
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
        let applied = self.apply_contents(&path, &contents)?;
        let (latest, watch) = watch::channel(Ok(applied));
        let readings = Readings { known: contents, changing: None };
        let file = WatchedFile { path, readings, core: Arc::downgrade(&self.core), latest };
        runtime.spawn(Watching(Some((file, task))).run());
        Ok(FileWatch { latest: watch })
    }

    fn apply_contents(&self, path: &Path, contents: &Contents) -> Latest {
        let text = contents.as_ref().map_err(|(kind, text)| Error::of_file(path, io::Error::new(*kind, &**text)))?;
        let applied = Policies::from_toml(text).and_then(|policies| self.apply(&policies));
        applied.map_err(|mistakes| Error::of_file(path, mistakes))
    }
}

impl FileWatch {
    /// Returns the policies that were applied when the file changed last, or why they were not.
    ///
    /// # Errors
    ///
    /// The file, as it is now, cannot be read or is mistaken. The limits of its last good version are in force.
    pub fn latest(&self) -> Result<Applied, Error> {
        self.latest.borrow().clone()
    }

    /// Waits for the next change of the file, and returns what became of it, like [`latest`](Self::latest). `None` means that
    /// the file is no longer watched.
    pub async fn changed(&mut self) -> Option<Result<Applied, Error>> {
        self.latest.changed().await.ok()?;
        Some(self.latest.borrow_and_update().clone())
    }
}

opaque_debug!(FileWatch);

/// The text of a file, or why it cannot be read.
type Contents = Result<String, (io::ErrorKind, String)>;

struct WatchedFile {
    path: PathBuf,
    readings: Readings,
    core: Weak<Core>,
    latest: watch::Sender<Latest>,
}

/// What the latest readings of a file had.
struct Readings {
    /// What was applied or refused last.
    known: Contents,
    /// What the last reading had in its place.
    changing: Option<Contents>,
}

/// Goes on on the thread of the limiter if its runtime ends before the limiter.
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
            thread.spawn(Self(Some(watched)).run());
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
            let Some(core) = self.core.upgrade() else { return };
            if self.readings.change_to(contents) {
                let latest = Limiter { core }.apply_contents(&self.path, &self.readings.known);
                latest.as_ref().err().into_iter().for_each(log::file_not_applied);
                self.latest.send_modify(|known| *known = latest);
            }
        }
    }
}

impl Readings {
    /// Notes a reading. Returns whether the contents have changed: two readings in a row differ from what is known, and not
    /// from each other.
    fn change_to(&mut self, contents: Contents) -> bool {
        let earlier = self.changing.take();
        if contents == self.known {
            return false;
        }
        let has_changed = earlier.as_ref() == Some(&contents);
        if has_changed {
            self.known = contents;
        } else {
            self.changing = Some(contents);
        }
        has_changed
    }
}

fn read(path: &Path) -> Contents {
    let text = || {
        let mut text = String::new();
        let length = File::open(path)?.take(MOST_BYTES + 1).read_to_string(&mut text)?;
        let is_too_long = || io::Error::new(io::ErrorKind::FileTooLarge, "it is longer than 4 MiB");
        if length as u64 > MOST_BYTES { Err(is_too_long()) } else { Ok(text) }
    };
    text().map_err(|error: io::Error| (error.kind(), error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_counts_when_two_readings_in_a_row_are_equal() {
        let mut readings = Readings { known: Ok("old".to_owned()), changing: None };
        let mut read = |text: &str| readings.change_to(Ok(text.to_owned()));
        assert!(!read("old") && !read("n") && !read("new") && read("new") && !read("new"));
        assert!(!read("other") && !read("new") && !read("other") && read("other"));
        let missing = || Err((io::ErrorKind::NotFound, "gone".to_owned()));
        assert!(!readings.change_to(missing()) && readings.change_to(missing()) && !readings.change_to(missing()));
    }
}
