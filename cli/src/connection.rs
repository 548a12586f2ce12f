//! The options that say where the tallies are, and how to connect.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};

use clap::Args;
use tallygate::context::Context;
use tallygate::{DEFAULT_PREFIX, Limiter, Tls};

use crate::duration;
use crate::failure::Failure;

/// Where the tallies are, and how to get there.
#[allow(clippy::doc_markdown, reason = "it is the text of the help")]
#[derive(Args, Debug)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connection {
    /// The address of the tallies, like redis://user:password@host:6379/0
    ///
    /// It is any address that the library takes: redis://, rediss://, redis+unix://, redis+sentinel://, redis+cluster://.
    /// Other users of this machine may see the words of a command: an address with a password belongs into TALLYGATE_URL.
    #[arg(long, env = "TALLYGATE_URL", hide_env_values = true, global = true)]
    url: Option<String>,

    /// What all keys begin with
    #[arg(long, env = "TALLYGATE_PREFIX", default_value = DEFAULT_PREFIX, global = true)]
    pub(crate) prefix: String,

    /// The file with the secret of values that are hashed
    ///
    /// White space around the secret, and a byte order mark, are ignored: by the programs, too.
    #[arg(long, value_name = "FILE", env = "TALLYGATE_SECRET_FILE", global = true)]
    pub(crate) secret_file: Option<PathBuf>,

    /// The programs have no secret
    #[arg(long, conflicts_with = "secret_file", global = true)]
    pub(crate) no_secret: bool,

    /// The certificates (PEM) of the authorities that rediss:// trusts, in place of the system's
    #[arg(long, value_name = "FILE", global = true)]
    ca_file: Option<PathBuf>,

    /// The certificate (PEM) that rediss:// shows to the server
    #[arg(long, value_name = "FILE", requires = "key_file", global = true)]
    cert_file: Option<PathBuf>,

    /// The private key (PEM) of that certificate
    #[arg(long, value_name = "FILE", requires = "cert_file", global = true)]
    key_file: Option<PathBuf>,

    /// Who makes changes, for the log of the programs
    #[arg(long, value_name = "NAME", env = "TALLYGATE_OPERATOR", hide_env_values = true, global = true)]
    operator: Option<String>,

    /// The longest that the server may take for one answer
    #[arg(
        long,
        value_name = "DURATION",
        env = "TALLYGATE_TIMEOUT",
        default_value = "2s",
        value_parser = duration::parse,
        global = true
    )]
    timeout: Duration,
}

impl Connection {
    pub(crate) fn is_known(&self) -> bool {
        self.url.as_deref().is_some_and(|url| !url.is_empty())
    }

    /// Returns the context of the command. It names the operator: by default, the user of this machine.
    pub(crate) fn context(&self) -> Context {
        let operator = self.operator.clone().or_else(|| env::var("USER").ok()).filter(|name| !name.is_empty());
        operator.into_iter().fold(Context::new(), |context, name| context.with("operator", name))
    }

    pub(crate) async fn connect(&self) -> Result<Limiter, Failure> {
        let url = self.url.as_deref().ok_or_else(|| {
            Failure::usage("it is not known where the tallies are; write `--url redis://…`, or set TALLYGATE_URL")
        })?;
        if url.starts_with("memory:") {
            return Err(Failure::usage(
                "the tallies of `memory://` are inside of the process that counts them; write the address of a server",
            ));
        }
        let builder = Limiter::builder().registry(false).looks_only().prefix(&self.prefix);
        let mut builder = builder.deadline(self.timeout).denial_cache(Duration::ZERO);
        if let Some(file) = &self.secret_file {
            builder = builder.secret(read(file, "--secret-file")?);
        }
        if let Some(tls) = self.tls()? {
            builder = builder.tls(tls);
        }
        Ok(builder.connect(url).await?)
    }

    fn tls(&self) -> Result<Option<Tls>, Failure> {
        let ca = self.ca_file.as_deref().map(|file| read(file, "--ca-file")).transpose()?;
        let own = match (&self.cert_file, &self.key_file) {
            (Some(cert), Some(key)) => Some((read(cert, "--cert-file")?, read(key, "--key-file")?)),
            _ => None,
        };
        if ca.is_none() && own.is_none() {
            return Ok(None);
        }
        let tls = ca.into_iter().fold(Tls::new(), Tls::ca);
        Ok(Some(own.into_iter().fold(tls, |tls, (cert, key)| tls.client_certificate(cert, key))))
    }
}

fn read(file: &Path, option: &str) -> Result<Vec<u8>, Failure> {
    fs::read(file).map_err(|error| Failure::unreadable(&format!("the file of `{option}`"), &error))
}
