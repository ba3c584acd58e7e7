//! Format and sanitize of a namespace that was opened for them.

use crate::guard::Access;
use crate::nvme::admin::AdminError;
use crate::nvme::target::NvmeTarget;
use testdrive_nvme::{FormatNvm, LbaFormat, SanitizeAction, SanitizeLog, SecureErase};
use testdrive_recording::DriveIdentity;

/// Why a drive was not erased.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EraseError {
    /// It cannot do what was asked.
    #[error("{0}")]
    Usage(String),
    /// It failed.
    #[error("{0}")]
    Drive(String),
}

impl dyn NvmeTarget + '_ {
    pub(crate) fn failed(&self, what: &str, error: &AdminError) -> EraseError {
        EraseError::Drive(format!("{} {what}: {error}", self.uri()))
    }

    /// The format with blocks of this size, or the present one.
    ///
    /// # Errors
    /// When the drive cannot be formatted, or not so.
    pub fn format_for(&self, block_bytes: Option<u64>) -> Result<LbaFormat, EraseError> {
        let uri = self.uri();
        if !self.controller().can_format {
            return Err(EraseError::Usage(format!(
                "{uri} has no format command: leave the format out, or give another drive"
            )));
        }
        let wanted = block_bytes.unwrap_or_else(|| self.namespace().block_bytes().into());
        let format = u32::try_from(wanted).ok().and_then(|bytes| self.namespace().format_of(bytes));
        format.ok_or_else(|| {
            let plain = self.namespace().formats.iter().filter(|format| format.metadata_bytes == 0);
            let sizes: Vec<String> = plain.map(|format| format.block_bytes.to_string()).collect();
            EraseError::Usage(format!(
                "{uri} cannot be formatted with blocks of {wanted} bytes: it has {}",
                sizes.join(", ")
            ))
        })
    }

    /// What the drive will be once it is formatted so.
    ///
    /// # Errors
    /// As [`Self::format_for`].
    pub fn identity_after_format(&self, block_bytes: Option<u64>) -> Result<DriveIdentity, EraseError> {
        let block_bytes = u64::from(self.format_for(block_bytes)?.block_bytes);
        let mut identity = self.identity().clone();
        identity.logical_block_bytes = block_bytes;
        identity.physical_block_bytes = identity.physical_block_bytes.max(block_bytes);
        identity.capacity_bytes = identity.capacity_bytes / block_bytes * block_bytes;
        Ok(identity)
    }

    /// Formats the namespace, and waits until that is done. What the device says of itself is as before until
    /// [`NvmeTarget::look_again`].
    ///
    /// # Errors
    /// As [`Self::format_for`], and when the drive fails.
    pub fn format(
        &self,
        block_bytes: Option<u64>,
        secure_erase: SecureErase,
    ) -> Result<LbaFormat, EraseError> {
        self.check_access(Access::Format)?;
        let format = self.format_for(block_bytes)?;
        let order = FormatNvm { nsid: self.nsid(), lba_format: format.index, secure_erase };
        self.with_admin(|admin| admin.format(order))
            .map_err(|error| self.failed("was not formatted", &error))?;
        Ok(format)
    }

    /// The way in which the drive is sanitized: the strongest that it has and that does not write everything over, if it has one.
    ///
    /// # Errors
    /// When it cannot sanitize.
    pub fn sanitize_action(&self) -> Result<SanitizeAction, EraseError> {
        let can = self.controller().sanitize;
        let actions = [
            (can.block_erase, SanitizeAction::BlockErase),
            (can.crypto_erase, SanitizeAction::CryptoErase),
            (can.overwrite, SanitizeAction::Overwrite),
        ];
        actions.into_iter().find(|(has, _)| *has).map(|(_, action)| action).ok_or_else(|| {
            EraseError::Usage(format!(
                "{} has no sanitize command: purge with how 'format' or 'trim', or give another drive",
                self.uri()
            ))
        })
    }

    /// Starts a sanitize of the whole drive; [`Self::sanitize_log`] tells how far it is.
    ///
    /// # Errors
    /// When it cannot sanitize, or refuses to.
    pub fn start_sanitize(&self) -> Result<SanitizeAction, EraseError> {
        self.check_access(Access::Sanitize)?;
        let action = self.sanitize_action()?;
        self.with_admin(|admin| admin.start_sanitize(action))
            .map_err(|error| self.failed("was not sanitized", &error))?;
        Ok(action)
    }

    /// How far a sanitize is, or what became of it.
    ///
    /// # Errors
    /// When the drive does not say.
    pub fn sanitize_log(&self) -> Result<SanitizeLog, EraseError> {
        self.with_admin(|admin| admin.sanitize_log())
            .map_err(|error| self.failed("does not say how far its sanitize is", &error))
    }

    /// The share of a running format that is done; `None` where none runs, the drive does not tell, or may not be asked.
    ///
    /// # Errors
    /// When the drive does not answer.
    pub fn format_done_share(&self) -> Result<Option<f64>, EraseError> {
        if !self.may_ask_while_formatting() || self.namespace().format_percent_left.is_none() {
            return Ok(None);
        }
        let namespace = self
            .with_admin(|admin| admin.namespace())
            .map_err(|error| self.failed("does not say how far its format is", &error))?;
        let left = namespace.format_percent_left.filter(|left| *left > 0);
        Ok(left.map(|left| 1.0 - f64::from(left.min(100)) / 100.0))
    }

    /// Whoever erases was checked for that.
    fn check_access(&self, needed: Access) -> Result<(), EraseError> {
        let may = match needed {
            Access::Format => matches!(self.access(), Access::Format | Access::Sanitize),
            other => self.access() == other,
        };
        if may {
            return Ok(());
        }
        Err(EraseError::Usage(format!("{} was not opened to be erased as a whole", self.uri())))
    }
}
