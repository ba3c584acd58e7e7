//! What a drive does behind its host's back, and makes of the host: memory that it keeps its tables in, power states that it goes to by
//! itself, interrupts that it holds back. The kernel sets the first two; whoever resets the controller sets none of them.

use crate::nvme::admin::{AdminQueue, NvmeAdmin};
use serde::Serialize;
use testdrive_nvme::{ControllerIdentity, HostMemoryBuffer, InterruptCoalescing, PowerTransitions};
use testdrive_recording::Warning;

/// The features, as they are set. `None` is what the drive does not have, or does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Background {
    /// Memory of the host.
    pub host_memory_buffer: Option<HostMemoryBuffer>,
    /// Power states that it goes to when it is idle.
    pub autonomous_power_transitions: Option<PowerTransitions>,
    /// Interrupts that it holds back.
    pub interrupt_coalescing: Option<InterruptCoalescing>,
}

impl Background {
    /// Asks for them, and for none that the drive says not to have: what it refuses is counted among its errors.
    pub fn ask<Q: AdminQueue + ?Sized>(
        admin: &mut NvmeAdmin<'_, Q>,
        controller: &ControllerIdentity,
    ) -> Background {
        let lends = controller.host_memory_preferred_bytes > 0;
        Background {
            host_memory_buffer: lends.then(|| admin.host_memory_buffer().ok()).flatten(),
            autonomous_power_transitions: controller
                .has_autonomous_power_transitions
                .then(|| admin.autonomous_power_transitions().ok())
                .flatten(),
            interrupt_coalescing: admin.interrupt_coalescing().ok(),
        }
    }

    /// What makes figures of the drive as it is set now less valid than they look; `by_kernel` is what the kernel had set, where another
    /// driver has the drive now.
    pub fn warnings(
        &self,
        uri: &str,
        controller: &ControllerIdentity,
        by_kernel: Option<&Background>,
    ) -> Vec<Warning> {
        let without_buffer = without_buffer(uri, controller, self.host_memory_buffer);
        let before = by_kernel.and_then(|kernel| kernel.autonomous_power_transitions.as_ref());
        let now = self.autonomous_power_transitions.as_ref();
        let differs = before.zip(now).and_then(|(before, now)| transitions_differ(uri, before, now));
        without_buffer.into_iter().chain(differs).collect()
    }
}

/// A drive that asks for memory of its host, and has none.
fn without_buffer(
    uri: &str,
    controller: &ControllerIdentity,
    buffer: Option<HostMemoryBuffer>,
) -> Option<Warning> {
    let asked_bytes = controller.host_memory_preferred_bytes;
    // A drive that does not tell has it or not: of that nothing is said.
    if asked_bytes == 0 || buffer?.enabled {
        return None;
    }
    let message = format!(
        "{uri} asks for {} MiB of the host's memory to keep its tables in, and has none: it is measured slower than it is",
        asked_bytes.div_ceil(1 << 20)
    );
    let remedy = "by pci: use an IOMMU and leave memory free; by the kernel see nvme.max_host_mem_size_mb";
    Some(Warning::new("host_memory_buffer_off", message, remedy))
}

/// A drive that goes to sleep otherwise than the kernel has it.
fn transitions_differ(uri: &str, before: &PowerTransitions, now: &PowerTransitions) -> Option<Warning> {
    let (before_counts, now_counts) = (counts(before), counts(now));
    if before_counts == now_counts {
        return None;
    }
    let said = |transitions: &[_]| if transitions.is_empty() { "off" } else { "on" };
    let message = format!(
        "{uri} goes to other power states by itself otherwise than the kernel has it (autonomous transitions {} here, {} there)",
        said(now_counts),
        said(before_counts)
    );
    let remedy =
        "figures after idle times, and of power, are not those of production: measure these by the block path or passthrough";
    Some(Warning::new("power_transitions_differ", message, remedy))
}

/// The transitions that happen: of a table that is switched off, none.
fn counts(transitions: &PowerTransitions) -> &[testdrive_nvme::PowerTransition] {
    if transitions.enabled {
        &transitions.transitions
    } else {
        &[]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdrive_nvme::PowerTransition;

    fn codes(now: &Background, preferred: u64, by_kernel: Option<&Background>) -> Vec<String> {
        let controller =
            ControllerIdentity { host_memory_preferred_bytes: preferred, ..ControllerIdentity::default() };
        now.warnings("pci:01:00.0", &controller, by_kernel).into_iter().map(|each| each.code).collect()
    }

    fn with_buffer(bytes: u64) -> Background {
        let buffer = HostMemoryBuffer { enabled: bytes > 0, bytes };
        Background { host_memory_buffer: Some(buffer), ..Background::default() }
    }

    fn sleeping(enabled: bool, idle_ms: &[u32]) -> Background {
        let transitions =
            idle_ms.iter().map(|idle_ms| PowerTransition { from_state: 0, to_state: 3, idle_ms: *idle_ms });
        let transitions = PowerTransitions { enabled, transitions: transitions.collect() };
        Background { autonomous_power_transitions: Some(transitions), ..Background::default() }
    }

    #[test]
    fn a_drive_without_the_memory_that_it_asks_for_is_warned_of() {
        assert_eq!(codes(&with_buffer(0), 64 << 20, None), ["host_memory_buffer_off"]);
        assert!(codes(&with_buffer(8 << 20), 64 << 20, None).is_empty());
        assert!(codes(&with_buffer(0), 0, None).is_empty());
        assert!(codes(&Background::default(), 64 << 20, None).is_empty());
    }

    #[test]
    fn a_drive_that_sleeps_otherwise_than_by_the_kernel_is_warned_of() {
        let kernel = sleeping(true, &[100]);
        assert_eq!(codes(&sleeping(false, &[]), 0, Some(&kernel)), ["power_transitions_differ"]);
        assert_eq!(codes(&sleeping(true, &[2_000]), 0, Some(&kernel)), ["power_transitions_differ"]);
        assert!(codes(&sleeping(true, &[100]), 0, Some(&kernel)).is_empty());
        // A table that is switched off is none.
        assert!(codes(&sleeping(false, &[]), 0, Some(&sleeping(false, &[100]))).is_empty());
        assert!(codes(&Background::default(), 0, Some(&kernel)).is_empty());
        assert!(codes(&kernel, 0, None).is_empty());
    }
}
