//! Features that a run sets, and sets back when it ends.

use crate::nvme::admin::{AdminError, AdminQueue, NvmeAdmin};
use crate::nvme::background::Background;
use crate::nvme::erase::EraseError;
use crate::nvme::target::NvmeTarget;
use serde_json::{json, Map, Value};

/// What a run asks for; `None` leaves a feature as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeatureChoice {
    /// Whether the volatile write cache is on.
    pub volatile_write_cache: Option<bool>,
    /// The power state.
    pub power_state: Option<u8>,
}

impl FeatureChoice {
    /// Whether nothing is asked for.
    pub fn is_empty(self) -> bool {
        self == FeatureChoice::default()
    }
}

/// Features that were changed; dropping this changes them back. A kill leaves them until the drive's next power cycle.
pub struct FeaturesSet {
    queue: Box<dyn AdminQueue + Send>,
    nsid: u32,
    before: FeatureChoice,
}

impl FeaturesSet {
    /// Sets what is asked for.
    ///
    /// # Errors
    /// When the drive does not have a feature, or refuses the value; what was set until then is set back.
    pub fn set(device: &dyn NvmeTarget, choice: FeatureChoice) -> Result<FeaturesSet, EraseError> {
        let uri = device.uri();
        let refused = |what: &str, error: AdminError| {
            EraseError::Usage(format!(
                "{uri} does not take {what} ({error}): leave it out, or give another value"
            ))
        };
        let before = FeatureChoice::default();
        let mut set = FeaturesSet { queue: device.admin(), nsid: device.nsid(), before };
        if let Some(enabled) = choice.volatile_write_cache {
            let name = format!("volatile_write_cache {enabled}");
            let before = set.admin().volatile_write_cache().map_err(|error| refused(&name, error))?;
            set.admin().set_volatile_write_cache(enabled).map_err(|error| refused(&name, error))?;
            set.before.volatile_write_cache = Some(before);
        }
        if let Some(state) = choice.power_state {
            let name = format!("power_state {state}");
            let states = device.controller().power_states;
            if state >= states {
                let what =
                    format!("{uri} has {states} power states, and power_state is {state}: give one below");
                return Err(EraseError::Usage(what));
            }
            let before = set.admin().power_state().map_err(|error| refused(&name, error))?;
            set.admin().set_power_state(state).map_err(|error| refused(&name, error))?;
            set.before.power_state = Some(before);
        }
        Ok(set)
    }

    fn admin(&mut self) -> NvmeAdmin<'_, dyn AdminQueue + Send> {
        NvmeAdmin::new(&mut *self.queue, self.nsid)
    }
}

impl Drop for FeaturesSet {
    fn drop(&mut self) {
        let before = self.before;
        // A drive that is gone has nothing to be set back.
        if let Some(enabled) = before.volatile_write_cache {
            let _ = self.admin().set_volatile_write_cache(enabled);
        }
        if let Some(state) = before.power_state {
            let _ = self.admin().set_power_state(state);
        }
    }
}

impl dyn NvmeTarget + '_ {
    /// What the drive says of itself, and of its health now, for a manifest.
    pub fn account(&self) -> Map<String, Value> {
        let mut account = Map::new();
        account.insert("controller".into(), json!(self.controller()));
        account.insert("namespace".into(), json!(self.namespace()));
        account.insert("before".into(), Value::Object(self.health()));
        account
    }

    /// What the drive says of its health now: SMART, the newest errors, and the features that a run may set.
    pub fn health(&self) -> Map<String, Value> {
        self.with_admin(|admin| admin.health(self.controller()))
    }

    /// What it does behind the host's back, as it is set now.
    pub fn background(&self) -> Background {
        self.with_admin(|admin| Background::ask(admin, self.controller()))
    }
}
