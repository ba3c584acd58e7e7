//! What an NVMe drive is asked, and told, by its admin queue, whichever path leads there.

use crate::nvme::background::Background;
use serde_json::{json, Map, Value};
use std::io;
use std::time::Duration;
use testdrive_nvme::{
    format_nvm, get_feature, get_log_page, identify, parse_controller_list, parse_namespace_list,
    power_state_of, sanitize, set_power_state, set_volatile_write_cache, volatile_write_cache_of,
    ControllerIdentity, ErrorLogEntry, Feature, FeatureSelect, FormatNvm, HostMemoryBuffer, IdentifyWhat,
    InterruptCoalescing, LogPage, NamespaceIdentity, NvmCommand, NvmLimits, PowerTransitions, SanitizeAction,
    SanitizeLog, SecondaryController, SmartLog, Status, ALL_NAMESPACES, CONTROLLER_LIST_MAX,
    ERROR_LOG_ENTRY_BYTES, HOST_MEMORY_BYTES, IDENTIFY_BYTES, NAMESPACE_LIST_MAX, POWER_TRANSITIONS_BYTES,
    SANITIZE_LOG_BYTES, SECONDARY_LIST_MAX, SMART_LOG_BYTES,
};

/// How long a command may take that only asks or sets.
const ASK_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a format may take: drives that write over everything need hours.
const FORMAT_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// Entries of the error log that are asked for at a time: one page, which every drive can send.
const ERROR_ENTRIES_MAX: u16 = 64;

/// What goes with an admin command.
#[derive(Debug)]
pub enum AdminData<'a> {
    /// Nothing.
    None,
    /// Memory for the drive's answer, as long as the command says.
    Read(&'a mut [u8]),
}

/// Why an admin command did nothing.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The drive says so.
    #[error("{0}")]
    Status(Status),
    /// It did not reach the drive, or no answer came.
    #[error("{0}")]
    Path(#[from] io::Error),
}

/// The admin queue of a controller.
pub trait AdminQueue {
    /// Sends a command and waits for its completion, at most so long; returns dword 0 of it.
    ///
    /// # Errors
    /// The drive's status, or why there is none.
    fn admin(
        &mut self,
        command: &NvmCommand,
        data: AdminData<'_>,
        timeout: Duration,
    ) -> Result<u32, AdminError>;
}

/// Questions to a drive, and what it is told to do.
pub struct NvmeAdmin<'a, Q: AdminQueue + ?Sized> {
    queue: &'a mut Q,
    nsid: u32,
}

impl<'a, Q: AdminQueue + ?Sized> NvmeAdmin<'a, Q> {
    /// By this queue, about this namespace.
    pub fn new(queue: &'a mut Q, nsid: u32) -> Self {
        NvmeAdmin { queue, nsid }
    }

    fn identified(&mut self, what: IdentifyWhat) -> Result<Box<[u8; IDENTIFY_BYTES]>, AdminError> {
        let mut bytes = Box::new([0; IDENTIFY_BYTES]);
        self.queue.admin(&identify(what), AdminData::Read(&mut bytes[..]), ASK_TIMEOUT)?;
        Ok(bytes)
    }

    fn told(&mut self, command: &NvmCommand) -> Result<u32, AdminError> {
        self.queue.admin(command, AdminData::None, ASK_TIMEOUT)
    }

    /// What the controller is.
    ///
    /// # Errors
    /// As [`AdminQueue::admin`]; so for all that follows.
    pub fn controller(&mut self) -> Result<ControllerIdentity, AdminError> {
        Ok(ControllerIdentity::parse(&*self.identified(IdentifyWhat::Controller)?))
    }

    /// What the namespace is.
    ///
    /// # Errors
    /// As [`AdminQueue::admin`].
    pub fn namespace(&mut self) -> Result<NamespaceIdentity, AdminError> {
        Ok(NamespaceIdentity::parse(&*self.identified(IdentifyWhat::Namespace(self.nsid))?))
    }

    /// The controller's limits for NVM commands; none of a drive that is too old to tell.
    pub fn limits(&mut self) -> NvmLimits {
        self.identified(IdentifyWhat::NvmController)
            .map_or(NvmLimits::default(), |bytes| NvmLimits::parse(&bytes))
    }

    /// The identifiers of the active namespaces: those that are attached to this controller.
    ///
    /// # Errors
    /// As [`AdminQueue::admin`]; also when they do not come in order.
    pub fn active_namespaces(&mut self) -> Result<Vec<u32>, AdminError> {
        self.listed(NAMESPACE_LIST_MAX, |admin, above| {
            let above = above.unwrap_or(0);
            Ok(parse_namespace_list(&*admin.identified(IdentifyWhat::ActiveNamespaces(above))?))
        })
    }

    /// The identifiers of every namespace of the subsystem, attached to this controller, to another or to none. A controller that does not
    /// manage namespaces has no such list, and only the active ones.
    ///
    /// # Errors
    /// As [`NvmeAdmin::active_namespaces`].
    pub fn all_namespaces(&mut self, controller: &ControllerIdentity) -> Result<Vec<u32>, AdminError> {
        if !controller.can_manage_namespaces {
            return self.active_namespaces();
        }
        self.listed(NAMESPACE_LIST_MAX, |admin, above| {
            let above = above.unwrap_or(0);
            Ok(parse_namespace_list(&*admin.identified(IdentifyWhat::AllocatedNamespaces(above))?))
        })
    }

    /// The identifiers of the controllers of the subsystem by which somebody can reach it. Those of virtual functions that are offline are
    /// left out; a controller that has the subsystem for itself is all there is.
    ///
    /// # Errors
    /// As [`NvmeAdmin::active_namespaces`].
    pub fn controllers(&mut self, controller: &ControllerIdentity) -> Result<Vec<u16>, AdminError> {
        if !controller.may_have_other_controllers {
            return Ok(vec![controller.controller_id]);
        }
        let after = |last: Option<u16>| last.map_or(0, |last| last.saturating_add(1));
        let mut listed = self.listed(CONTROLLER_LIST_MAX, |admin, last| {
            let first = IdentifyWhat::SubsystemControllers(after(last));
            Ok(parse_controller_list(&*admin.identified(first)?))
        })?;
        if controller.can_manage_virtualization {
            // One that does not tell has none that could be left out.
            let mut offline = Vec::new();
            let told = self.listed(SECONDARY_LIST_MAX, |admin, last| {
                let first = IdentifyWhat::SecondaryControllers(after(last));
                let entries = SecondaryController::parse_list(&*admin.identified(first)?);
                offline.extend(entries.iter().filter(|each| !each.is_online).map(|each| each.controller_id));
                Ok(entries.iter().map(|each| each.controller_id).collect())
            });
            if told.is_ok() {
                listed.retain(|id| !offline.contains(id));
            }
        }
        Ok(listed)
    }

    /// A list of identifiers in ascending order, page by page: each is asked for by the last identifier of the one before.
    fn listed<T: Copy + PartialOrd>(
        &mut self,
        page_max: usize,
        mut page_after: impl FnMut(&mut Self, Option<T>) -> Result<Vec<T>, AdminError>,
    ) -> Result<Vec<T>, AdminError> {
        let mut found: Vec<T> = Vec::new();
        loop {
            let page = page_after(self, found.last().copied())?;
            let is_last = page.len() < page_max;
            found.extend(page);
            if !found.is_sorted_by(|a, b| a < b) {
                return Err(AdminError::Path(io::Error::other("its list of identifiers is in no order")));
            }
            if is_last {
                return Ok(found);
            }
        }
    }

    /// The SMART log of the controller.
    ///
    /// # Errors
    /// As [`AdminQueue::admin`].
    pub fn smart(&mut self) -> Result<SmartLog, AdminError> {
        let mut bytes = [0; SMART_LOG_BYTES];
        let command = get_log_page(LogPage::Smart, ALL_NAMESPACES, SMART_LOG_BYTES as u32);
        self.queue.admin(&command, AdminData::Read(&mut bytes), ASK_TIMEOUT)?;
        Ok(SmartLog::parse(&bytes))
    }

    /// The newest entries of the error log, of so many that it has.
    ///
    /// # Errors
    /// As [`AdminQueue::admin`].
    pub fn errors(&mut self, entries: u16) -> Result<Vec<ErrorLogEntry>, AdminError> {
        let mut bytes = vec![0; usize::from(entries.clamp(1, ERROR_ENTRIES_MAX)) * ERROR_LOG_ENTRY_BYTES];
        let command = get_log_page(LogPage::Errors, ALL_NAMESPACES, bytes.len() as u32);
        self.queue.admin(&command, AdminData::Read(&mut bytes), ASK_TIMEOUT)?;
        Ok(ErrorLogEntry::parse_log(&bytes))
    }

    /// What became of the last sanitize, or how far it is.
    ///
    /// # Errors
    /// As [`AdminQueue::admin`].
    pub fn sanitize_log(&mut self) -> Result<SanitizeLog, AdminError> {
        let mut bytes = [0; SANITIZE_LOG_BYTES];
        let command = get_log_page(LogPage::Sanitize, ALL_NAMESPACES, SANITIZE_LOG_BYTES as u32);
        self.queue.admin(&command, AdminData::Read(&mut bytes), ASK_TIMEOUT)?;
        Ok(SanitizeLog::parse(&bytes))
    }

    /// Whether the volatile write cache is on.
    ///
    /// # Errors
    /// As [`AdminQueue::admin`]; also where there is none.
    pub fn volatile_write_cache(&mut self) -> Result<bool, AdminError> {
        self.told(&get_feature(Feature::VolatileWriteCache, FeatureSelect::Current))
            .map(volatile_write_cache_of)
    }

    /// The power state.
    ///
    /// # Errors
    /// As [`AdminQueue::admin`].
    pub fn power_state(&mut self) -> Result<u8, AdminError> {
        self.told(&get_feature(Feature::PowerManagement, FeatureSelect::Current)).map(power_state_of)
    }

    /// Switches the volatile write cache, until the next power cycle.
    ///
    /// # Errors
    /// As [`AdminQueue::admin`].
    pub fn set_volatile_write_cache(&mut self, enabled: bool) -> Result<(), AdminError> {
        self.told(&set_volatile_write_cache(enabled)).map(drop)
    }

    /// Chooses a power state, until the next power cycle.
    ///
    /// # Errors
    /// As [`AdminQueue::admin`].
    pub fn set_power_state(&mut self, state: u8) -> Result<(), AdminError> {
        self.told(&set_power_state(state)).map(drop)
    }

    /// Formats, and waits until that is done.
    ///
    /// # Errors
    /// As [`AdminQueue::admin`].
    pub fn format(&mut self, format: FormatNvm) -> Result<(), AdminError> {
        self.queue.admin(&format_nvm(format), AdminData::None, FORMAT_TIMEOUT).map(drop)
    }

    /// Starts a sanitize; the sanitize log tells how far it is.
    ///
    /// # Errors
    /// As [`AdminQueue::admin`].
    pub fn start_sanitize(&mut self, action: SanitizeAction) -> Result<(), AdminError> {
        self.told(&sanitize(action)).map(drop)
    }

    /// The memory of the host that the drive has.
    ///
    /// # Errors
    /// As [`AdminQueue::admin`]; also where it asks for none.
    pub fn host_memory_buffer(&mut self) -> Result<HostMemoryBuffer, AdminError> {
        let mut attributes = [0; HOST_MEMORY_BYTES];
        let dword = self.feature(Feature::HostMemoryBuffer, &mut attributes)?;
        Ok(HostMemoryBuffer::of(dword, &attributes))
    }

    /// Which power states the drive goes to by itself.
    ///
    /// # Errors
    /// As [`AdminQueue::admin`]; also where it does not.
    pub fn autonomous_power_transitions(&mut self) -> Result<PowerTransitions, AdminError> {
        let mut table = [0; POWER_TRANSITIONS_BYTES];
        let dword = self.feature(Feature::AutonomousPowerTransitions, &mut table)?;
        Ok(PowerTransitions::of(dword, &table))
    }

    /// How long the drive may hold interrupts back.
    ///
    /// # Errors
    /// As [`AdminQueue::admin`].
    pub fn interrupt_coalescing(&mut self) -> Result<InterruptCoalescing, AdminError> {
        self.told(&get_feature(Feature::InterruptCoalescing, FeatureSelect::Current))
            .map(InterruptCoalescing::of)
    }

    /// A feature that comes with data.
    fn feature(&mut self, feature: Feature, data: &mut [u8]) -> Result<u32, AdminError> {
        let command = get_feature(feature, FeatureSelect::Current);
        self.queue.admin(&command, AdminData::Read(data), ASK_TIMEOUT)
    }

    /// What the drive tells of its health and settings, for a manifest: each key that it does not tell is null.
    pub fn health(&mut self, controller: &ControllerIdentity) -> Map<String, Value> {
        let mut health = Map::new();
        health.insert("smart".into(), json!(self.smart().ok()));
        health.insert("errors".into(), json!(self.errors(controller.error_log_entries).ok()));
        health.insert("volatile_write_cache".into(), json!(self.volatile_write_cache().ok()));
        health.insert("power_state".into(), json!(self.power_state().ok()));
        if let Value::Object(background) = json!(Background::ask(self, controller)) {
            health.extend(background);
        }
        health
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue that answers with what it was given, and notes what it was asked.
    struct Scripted {
        asked: Vec<NvmCommand>,
        answer: Vec<u8>,
        dword: Result<u32, u16>,
    }

    impl AdminQueue for Scripted {
        fn admin(
            &mut self,
            command: &NvmCommand,
            data: AdminData<'_>,
            _: Duration,
        ) -> Result<u32, AdminError> {
            self.asked.push(*command);
            if let AdminData::Read(bytes) = data {
                assert_eq!(bytes.len(), command.data_bytes as usize);
                let count = self.answer.len().min(bytes.len());
                bytes[..count].copy_from_slice(&self.answer[..count]);
            }
            self.dword.map_err(|field| AdminError::Status(Status::from_field(field)))
        }
    }

    #[test]
    fn active_namespaces_end_at_the_first_zero() {
        let answer = [1_u32, 3, 0, 7].iter().flat_map(|nsid| nsid.to_le_bytes()).collect();
        let mut queue = Scripted { asked: Vec::new(), answer, dword: Ok(0) };
        assert_eq!(NvmeAdmin::new(&mut queue, 1).active_namespaces().unwrap(), [1, 3]);
    }

    /// A drive that lists what it has: 3,000 namespaces, of which it has the first two attached to the controller that is asked, and as many
    /// controllers, of which every other from 2 on is of a virtual function that is offline.
    struct Lister {
        namespaces: u32,
        controllers: u16,
    }

    impl AdminQueue for Lister {
        fn admin(
            &mut self,
            command: &NvmCommand,
            data: AdminData<'_>,
            _: Duration,
        ) -> Result<u32, AdminError> {
            let AdminData::Read(bytes) = data else { panic!("{command:?}") };
            let (what, first) = (command.cdw[0] & 0xff, (command.cdw[0] >> 16) as u16);
            let namespaces = match what {
                0x02 => 1..=2,
                0x10 => 1..=self.namespaces,
                _ => 0..=0,
            };
            for (word, nsid) in bytes.chunks_exact_mut(4).zip(namespaces.filter(|nsid| *nsid > command.nsid))
            {
                word.copy_from_slice(&nsid.to_le_bytes());
            }
            let ids = (1..=self.controllers).filter(|id| *id >= first);
            match what {
                0x13 => {
                    let ids: Vec<u16> = ids.take(CONTROLLER_LIST_MAX).collect();
                    let words = std::iter::once(ids.len() as u16).chain(ids);
                    bytes
                        .chunks_exact_mut(2)
                        .zip(words)
                        .for_each(|(at, id)| at.copy_from_slice(&id.to_le_bytes()));
                }
                0x15 => {
                    let ids: Vec<u16> = ids.filter(|id| *id > 1).take(SECONDARY_LIST_MAX).collect();
                    bytes[0] = ids.len() as u8;
                    for (entry, id) in bytes.chunks_exact_mut(32).skip(1).zip(ids) {
                        entry[..2].copy_from_slice(&id.to_le_bytes());
                        entry[4] = (id % 2) as u8;
                    }
                }
                _ => {}
            }
            Ok(0)
        }
    }

    #[test]
    fn lists_are_followed_beyond_their_first_page_and_offline_controllers_left_out() {
        let mut drive = Lister { namespaces: 3_000, controllers: 5_000 };
        let mut admin = NvmeAdmin::new(&mut drive, 1);
        let plain = ControllerIdentity { controller_id: 7, ..ControllerIdentity::default() };
        assert_eq!(admin.all_namespaces(&plain).unwrap(), [1, 2]);
        assert_eq!(admin.controllers(&plain).unwrap(), [7]);
        let managed = ControllerIdentity {
            can_manage_namespaces: true,
            may_have_other_controllers: true,
            ..ControllerIdentity::default()
        };
        assert_eq!(admin.all_namespaces(&managed).unwrap(), (1..=3_000).collect::<Vec<_>>());
        assert_eq!(admin.controllers(&managed).unwrap(), (1..=5_000).collect::<Vec<_>>());
        let virtual_too = ControllerIdentity { can_manage_virtualization: true, ..managed };
        let online = |id: &u16| id % 2 == 1;
        assert_eq!(admin.controllers(&virtual_too).unwrap(), (1..=5_000).filter(online).collect::<Vec<_>>());
    }

    #[test]
    fn a_list_in_no_order_is_an_error_and_never_asked_for_without_end() {
        let answer = [0x0000_0002_u32; 1024].iter().flat_map(|nsid| nsid.to_le_bytes()).collect();
        let mut queue = Scripted { asked: Vec::new(), answer, dword: Ok(0) };
        let error = NvmeAdmin::new(&mut queue, 1).active_namespaces().unwrap_err();
        assert!(error.to_string().contains("in no order"), "{error}");
        assert_eq!(queue.asked.len(), 1);
    }

    #[test]
    fn the_answer_of_a_feature_is_in_the_completion() {
        let mut queue = Scripted { asked: Vec::new(), answer: Vec::new(), dword: Ok(0x41) };
        let mut admin = NvmeAdmin::new(&mut queue, 1);
        assert!(admin.volatile_write_cache().unwrap());
        assert_eq!(admin.power_state().unwrap(), 1);
        assert_eq!(queue.asked[1].cdw[0], 2);
    }

    #[test]
    fn what_a_drive_refuses_is_null_in_its_health_and_an_error_elsewhere() {
        // Invalid log page, do not retry.
        let mut queue = Scripted { asked: Vec::new(), answer: Vec::new(), dword: Err(0x4109) };
        let mut admin = NvmeAdmin::new(&mut queue, 1);
        let asks_for_all = ControllerIdentity {
            host_memory_preferred_bytes: 4096,
            has_autonomous_power_transitions: true,
            error_log_entries: 64,
            ..ControllerIdentity::default()
        };
        let health = admin.health(&asks_for_all);
        assert!(health.len() == 7 && health.values().all(Value::is_null), "{health:?}");
        assert!(admin.smart().unwrap_err().to_string().starts_with("invalid log page (NVMe status 0x4109"));
        assert_eq!(admin.limits(), NvmLimits::default());
    }
}
