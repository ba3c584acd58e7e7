//! What the host does that shows in latencies, and that nobody can tell afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use testdrive_recording::Warning;

/// The host's CPUs.
pub const CPUS: &str = "/sys/devices/system/cpu";

/// The rule under which CPUs keep their frequency up.
const STEADY: &str = "performance";

/// CPUs that slow down between I/Os. `cpus` is the directory of the kernel's CPUs; a host whose kernel does not set the frequency has
/// no rule, and no warning.
pub fn slow_governor(cpus: &Path) -> Option<Warning> {
    let mut others: BTreeMap<String, usize> = BTreeMap::new();
    for entry in fs::read_dir(cpus).ok()?.flatten() {
        let Ok(governor) = fs::read_to_string(entry.path().join("cpufreq/scaling_governor")) else {
            continue;
        };
        if governor.trim() != STEADY {
            *others.entry(governor.trim().to_string()).or_default() += 1;
        }
    }
    if others.is_empty() {
        return None;
    }
    let found: Vec<String> = others.iter().map(|(name, count)| format!("{name} on {count}")).collect();
    Some(Warning {
        code: "cpu_governor".into(),
        message: format!("CPUs slow down between I/Os: their governor is {}", found.join(", ")),
        remedy: "cpupower frequency-set -g performance, and run it again".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, governors: &[&str]) -> std::path::PathBuf {
        let cpus = std::env::temp_dir().join(format!("testdrive-governor-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&cpus);
        fs::create_dir_all(cpus.join("cpufreq")).unwrap();
        for (index, governor) in governors.iter().enumerate() {
            let directory = cpus.join(format!("cpu{index}/cpufreq"));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("scaling_governor"), format!("{governor}\n")).unwrap();
        }
        cpus
    }

    #[test]
    fn a_governor_that_slows_cpus_down_is_named_with_its_cpus() {
        let cpus = host("slow", &["performance", "powersave", "powersave"]);
        let found = slow_governor(&cpus).unwrap();
        assert_eq!(found.code, "cpu_governor");
        assert!(found.message.ends_with("their governor is powersave on 2"), "{}", found.message);
        fs::remove_dir_all(cpus).unwrap();
    }

    #[test]
    fn cpus_at_full_speed_and_hosts_without_a_governor_are_well() {
        for governors in [&["performance", "performance"][..], &[]] {
            let cpus = host(&format!("well-{}", governors.len()), governors);
            assert_eq!(slow_governor(&cpus), None);
            fs::remove_dir_all(cpus).unwrap();
        }
        assert_eq!(slow_governor(Path::new("/nonexistent")), None);
    }
}
