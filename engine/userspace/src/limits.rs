//! How long the commands of a namespace may be, and what it can do.

use crate::error::ControllerError;
use crate::registers::Capabilities;
use testdrive_nvme::{
    blocks_max_of_mdts, BlockSize, ControllerIdentity, NamespaceIdentity, NvmLimits, TrimLimits, NLB_MAX,
};

/// The longest transfer of one command, where the drive allows longer ones: each command in flight has a list for so much.
const TRANSFER_BYTES_MAX: u32 = 4 << 20;

/// What the commands to a namespace must keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Its identifier.
    pub namespace: u32,
    /// Its blocks.
    pub block: BlockSize,
    /// How many there are.
    pub blocks: u64,
    /// The most blocks of a read or a write.
    pub transfer_blocks: u32,
    /// The most blocks of a write zeroes.
    pub zeroes_blocks: u32,
    /// What a deallocate may carry; `None` where there is no such command.
    pub trims: Option<TrimLimits>,
    /// Whether there is a write zeroes.
    pub write_zeroes: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            namespace: 0,
            block: BlockSize::new(512).expect("512 is the size of a block"),
            blocks: 0,
            transfer_blocks: 1,
            zeroes_blocks: 1,
            trims: None,
            write_zeroes: false,
        }
    }
}

impl Limits {
    /// Of a namespace.
    ///
    /// # Errors
    /// When it has blocks that are none.
    pub fn of(
        id: u32,
        controller: &ControllerIdentity,
        namespace: &NamespaceIdentity,
        nvm: &NvmLimits,
        capabilities: &Capabilities,
    ) -> Result<Limits, ControllerError> {
        let block_bytes = namespace.block_bytes();
        let block = BlockSize::new(block_bytes).ok_or_else(|| {
            ControllerError::Unsupported(format!(
                "namespace {id} has blocks of {block_bytes} bytes: format it with 512 or 4096"
            ))
        })?;
        let unit = 1_u64 << capabilities.page_shift_min;
        let of_mdts = |exponent| blocks_max_of_mdts(exponent, unit, block);
        let ours = (TRANSFER_BYTES_MAX / block_bytes).min(NLB_MAX);
        let of_transfers = of_mdts(controller.mdts);
        // A drive that names no limit for write zeroes has none by the specification. The kernel keeps to that of transfers then, since
        // drives are known that want it so.
        let zeroes = if nvm.write_zeroes_size == 0 { of_transfers } else { of_mdts(nvm.write_zeroes_size) };
        Ok(Limits {
            namespace: id,
            block,
            blocks: namespace.blocks,
            transfer_blocks: of_transfers.map_or(ours, |most| most.min(ours)),
            zeroes_blocks: zeroes.map_or(NLB_MAX, |most| most.min(NLB_MAX)),
            trims: controller.can_deallocate.then(|| TrimLimits::of(nvm)),
            write_zeroes: controller.can_write_zeroes,
        })
    }

    /// The longest transfer of one command.
    pub fn transfer_bytes_max(&self) -> usize {
        self.transfer_blocks as usize * self.block.bytes() as usize
    }
}
