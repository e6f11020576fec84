//! How much memory one value could ever have.

use std::fmt;
use std::fs;
use std::path::Path;

use super::Ctx;
use super::server::Info;

/// The most that this server, on this machine, could give to one value if it held nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// In bytes.
    pub bytes: u64,
    /// Where the figure comes from.
    pub source: Source,
}

/// Where a limit comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The server's own configuration.
    Maxmemory,
    /// The memory that the machine has.
    Machine,
    /// The limit of the control group (container) that the server runs in.
    ControlGroup,
    /// A setting of the module, by its name.
    Setting(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Maxmemory => "maxmemory",
            Self::Machine => "the machine's memory",
            Self::ControlGroup => "the control group's memory limit",
            Self::Setting(name) => name,
        })
    }
}

impl Limit {
    /// The limit now: `maxmemory`, or without one the smaller of the machine's memory and the control group's limit.
    /// None if nothing is known.
    ///
    /// Measured: 80 to 140 µs, for the server writes a section of its INFO, and files are read. So it is for values of
    /// a size that is rare.
    pub fn now(ctx: Ctx<'_>) -> Option<Self> {
        let info = Info::read(ctx, c"memory");
        let figure = |field, source| {
            let bytes = info.number(field).filter(|&bytes| bytes > 0)?;
            Some(Self { bytes, source })
        };
        figure(c"maxmemory", Source::Maxmemory).or_else(|| {
            let machine = figure(c"total_system_memory", Source::Machine);
            let group = control_group().map(|bytes| Self { bytes, source: Source::ControlGroup });
            machine.into_iter().chain(group).min_by_key(|limit| limit.bytes)
        })
    }
}

/// The limit of this process's control group, if it is in one that has a limit.
fn control_group() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    smallest_limit(Path::new("/sys/fs/cgroup"), &groups)
}

/// The smallest limit among the control groups that `groups` (the text of `/proc/self/cgroup`) names and those they lie
/// in.
///
/// Each line is `number:controllers:path`; version 2 is the line with number 0 and no controllers, and keeps its groups
/// under `root` itself, version 1 keeps those of the controller `memory` under `root`/memory. Inside a container the
/// path may be one of the host's, of which only the last ancestor, the mounted root, exists; so what is not there is
/// passed over.
fn smallest_limit(root: &Path, groups: &str) -> Option<u64> {
    let of_group = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (base, file) = if controllers.is_empty() {
            (root.to_path_buf(), "memory.max")
        } else if controllers.split(',').any(|name| name == "memory") {
            (root.join("memory"), "memory.limit_in_bytes")
        } else {
            return None;
        };
        let group = base.join(path.trim_start_matches('/'));
        let within = group.ancestors().take_while(|group| group.starts_with(&base));
        // Version 2 says `max` for no limit, which is no number; version 1 says the largest number of pages in 2⁶³
        // bytes, which is never the smallest.
        within.filter_map(|group| fs::read_to_string(group.join(file)).ok()?.trim().parse().ok()).min()
    };
    groups.lines().filter_map(of_group).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of control groups with the files given.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn version_2_takes_the_smallest_on_the_way_up() {
        let root = tree(&[("a/memory.max", "1000\n"), ("a/b/memory.max", "2000\n"), ("a/b/c/memory.max", "max\n")]);
        assert_eq!(smallest_limit(root.path(), "0::/a/b/c\n"), Some(1000));
        assert_eq!(smallest_limit(root.path(), "0::/\n"), None);
    }

    #[test]
    fn a_container_sees_its_own_root_only() {
        let root = tree(&[("memory.max", "3000\n")]);
        assert_eq!(smallest_limit(root.path(), "0::/docker/0123\n"), Some(3000));
    }

    /// A process that was started outside of its namespace's root has a path that leads out of it.
    #[test]
    fn paths_that_lead_out_of_the_tree_end_at_its_root() {
        let root = tree(&[("memory.max", "5000\n")]);
        assert_eq!(smallest_limit(root.path(), "0::/../../other\n"), Some(5000));
    }

    /// Version 1 for memory, version 2 for other things, as systemd mounts them side by side.
    #[test]
    fn both_versions_at_once() {
        let root = tree(&[
            ("memory/docker/0123/memory.limit_in_bytes", "7000\n"),
            ("memory/docker/memory.limit_in_bytes", "6000\n"),
            ("unified/docker/0123/cgroup.procs", "1\n"),
        ]);
        let groups = "12:pids:/docker/0123\n9:memory:/docker/0123\n1:name=systemd:/docker/0123\n0::/docker/0123\n";
        assert_eq!(smallest_limit(root.path(), groups), Some(6000));
        // In the container the host's path is not there; what is mounted is its own group.
        let root = tree(&[("memory/memory.limit_in_bytes", "7000\n")]);
        assert_eq!(smallest_limit(root.path(), groups), Some(7000));
    }

    #[test]
    fn version_1_has_its_own_tree() {
        let root = tree(&[
            ("memory/x/memory.limit_in_bytes", "4000\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("cpu/x/memory.limit_in_bytes", "1\n"),
        ]);
        assert_eq!(smallest_limit(root.path(), "5:cpu:/x\n4:cpuset,memory:/x\n0::/\n"), Some(4000));
    }

    #[test]
    fn nothing_known_is_no_limit() {
        assert_eq!(smallest_limit(Path::new("/nowhere"), "0::/a\nnonsense\n\n1:memory\n"), None);
    }
}
