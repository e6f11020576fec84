//! Programs in other languages, run against a server.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Seconds that a script may take; none here takes more than a few.
const DEADLINE: &str = "50";

/// What runs a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Python 3 with redis-py, which is in the directory `$BLOOMGATE_REDIS_PY`.
    Python,
    /// Node.js with node-redis, which is in `node_modules` in the directory `$BLOOMGATE_NODE_REDIS`.
    Node,
    /// sh, with redis-cli.
    Shell,
}

impl Language {
    /// What has to be there for it, in a test's `needs!`.
    pub fn needs(self) -> &'static str {
        match self {
            Self::Python => "redis-py (`make test-all` fetches it)",
            Self::Node => "node-redis (`make test-all` fetches it)",
            Self::Shell => "redis-cli",
        }
    }

    /// Whether it is there.
    pub fn is_there(self) -> bool {
        match self {
            Self::Python | Self::Node => self.client().is_some(),
            Self::Shell => Command::new("redis-cli").arg("--version").output().is_ok_and(|run| run.status.success()),
        }
    }

    /// The directory of its client.
    fn client(self) -> Option<PathBuf> {
        let variable = match self {
            Self::Python => "BLOOMGATE_REDIS_PY",
            Self::Node => "BLOOMGATE_NODE_REDIS",
            Self::Shell => return None,
        };
        env::var_os(variable).map(PathBuf::from)
    }

    /// Runs the script `text`, as a file of this name in a directory of its own.
    ///
    /// # Panics
    /// With the script's output, when it fails.
    #[track_caller]
    pub fn run(self, name: &str, text: &str, arguments: &[&str]) {
        let Output { status, stdout, stderr } = self.output(name, text, arguments);
        let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(status.success(), "{name} {arguments:?}: {status}\n{stdout}{stderr}");
    }

    fn output(self, name: &str, text: &str, arguments: &[&str]) -> Output {
        let directory = tempfile::Builder::new().prefix("bloomgate-").tempdir().expect("a temporary directory");
        let file = directory.path().join(name);
        fs::write(&file, text).expect("the script can be written");
        let mut command = Command::new("timeout");
        command.args([DEADLINE, self.program()]).arg(&file).args(arguments).current_dir(directory.path());
        match (self, self.client()) {
            (Self::Python, Some(client)) => _ = command.env("PYTHONPATH", client),
            (Self::Node, Some(client)) => link(&client.join("node_modules"), &directory.path().join("node_modules")),
            _ => {}
        }
        command.output().unwrap_or_else(|e| panic!("cannot run timeout {}: {e}", self.program()))
    }

    fn program(self) -> &'static str {
        match self {
            Self::Python => "python3",
            Self::Node => "node",
            Self::Shell => "sh",
        }
    }
}

fn link(target: &Path, path: &Path) {
    symlink(target, path).expect("a link in a directory of ours");
}
