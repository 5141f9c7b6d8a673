//! Synchronization statements: what there are, and what each takes.

use crate::scalar::spelled;

spelled! {
    /// What a synchronization statement does. All but [`SyncOp::MbarrierWait`] and the waits go on
    /// at once; which threads take part together, and which architectures have it, is the atom
    /// table's.
    SyncOp {
        /// Makes the barriers of a view ready, each for so many arrivals a phase.
        MbarrierInit = "mbarrier.init",
        /// Arrives, once or so many times.
        MbarrierArrive = "mbarrier.arrive",
        /// Arrives once; the phase also awaits so many bytes of asynchronous copies.
        MbarrierExpect = "mbarrier.expect",
        /// Waits until the phase of this parity (0 or 1) is complete; a fresh barrier passes
        /// parity 1.
        MbarrierWait = "mbarrier.wait",
        /// Lets the thread's asynchronous copies so far arrive when they are complete; the arrival
        /// is one of those that the phase counts.
        MbarrierAsyncArrive = "mbarrier.async_arrive",
        /// Makes initialized barriers visible to the cluster and to asynchronous copies.
        FenceMbarrierInit = "fence.mbarrier_init",
        /// Orders the thread's accesses to shared memory before those of asynchronous copies that
        /// follow.
        FenceAsync = "fence.async",
        /// Arrives at the barrier of the cluster's blocks.
        ClusterArrive = "cluster.arrive",
        /// Arrives there and orders no memory.
        ClusterArriveRelaxed = "cluster.arrive_relaxed",
        /// Waits until all threads of the cluster have arrived.
        ClusterWait = "cluster.wait",
        /// Closes the thread's group of asynchronous copies.
        AsyncCommit = "async.commit",
        /// At most so many of the thread's groups are still under way afterwards.
        AsyncWait = "async.wait",
        /// Closes the thread's group of bulk copies.
        BulkCommit = "bulk.commit",
        /// At most so many of the thread's bulk groups are still under way afterwards.
        BulkWait = "bulk.wait",
        /// At most so many of the thread's bulk groups still read their sources afterwards.
        BulkWaitRead = "bulk.wait_read",
        /// Orders accesses to registers and shared memory before the warpgroup's MatMuls that
        /// follow.
        WgmmaFence = "wgmma.fence",
        /// Closes the warpgroup's group of asynchronous MatMuls.
        WgmmaCommit = "wgmma.commit",
        /// At most so many of the warpgroup's groups are still under way afterwards.
        WgmmaWait = "wgmma.wait",
        /// Raises the registers that each thread of the warpgroup may use to so many.
        RegistersInc = "registers.inc",
        /// Lowers them to so many.
        RegistersDec = "registers.dec",
        /// Waits until the kernels before this one are complete.
        GridWait = "grid.wait",
        /// Lets kernels that wait for this one start.
        GridLaunch = "grid.launch",
        /// Brings a tensor map near, so that the first copy by it does not wait for it.
        Prefetch = "prefetch",
    }
}

/// The operands of a synchronization statement: first what `tensor` says, then what `number` says.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SyncSignature {
    /// Whether and of what a view is due.
    pub tensor: SyncTensor,
    /// Whether and as what a number is due.
    pub number: SyncNumber,
}

/// The view that a synchronization statement takes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SyncTensor {
    /// None.
    None,
    /// One mbarrier.
    Mbarrier,
    /// Any number of mbarriers.
    Mbarriers,
    /// A tensor map.
    TensorMap,
}

/// The number that a synchronization statement takes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SyncNumber {
    /// None.
    None,
    /// Of this meaning; any expression.
    Any(&'static str),
    /// Of this meaning; 1 where it is left out.
    OrOne(&'static str),
    /// Of this meaning; a constant.
    Constant(&'static str),
}

impl SyncOp {
    /// Whether threads arrive by it at an mbarrier, be it later by what they have started.
    pub fn arrives(self) -> bool {
        matches!(
            self,
            SyncOp::MbarrierArrive | SyncOp::MbarrierExpect | SyncOp::MbarrierAsyncArrive
        )
    }
    /// Its operands.
    pub fn signature(self) -> SyncSignature {
        use SyncNumber as N;
        use SyncTensor as T;
        let (tensor, number) = match self {
            SyncOp::MbarrierInit => (T::Mbarriers, N::Any("count")),
            SyncOp::MbarrierArrive => (T::Mbarrier, N::OrOne("count")),
            SyncOp::MbarrierExpect => (T::Mbarrier, N::Any("bytes")),
            SyncOp::MbarrierWait => (T::Mbarrier, N::Any("parity")),
            SyncOp::MbarrierAsyncArrive => (T::Mbarrier, N::None),
            SyncOp::AsyncWait | SyncOp::BulkWait | SyncOp::BulkWaitRead | SyncOp::WgmmaWait => {
                (T::None, N::Constant("groups"))
            }
            SyncOp::RegistersInc | SyncOp::RegistersDec => (T::None, N::Constant("registers")),
            SyncOp::Prefetch => (T::TensorMap, N::None),
            SyncOp::FenceMbarrierInit
            | SyncOp::FenceAsync
            | SyncOp::ClusterArrive
            | SyncOp::ClusterArriveRelaxed
            | SyncOp::ClusterWait
            | SyncOp::AsyncCommit
            | SyncOp::BulkCommit
            | SyncOp::WgmmaFence
            | SyncOp::WgmmaCommit
            | SyncOp::GridWait
            | SyncOp::GridLaunch => (T::None, N::None),
        };
        SyncSignature { tensor, number }
    }

    /// How it is written: `mbarrier.arrive(%b, count)`.
    pub fn usage(self) -> String {
        let SyncSignature { tensor, number } = self.signature();
        let tensor = match tensor {
            SyncTensor::None => None,
            SyncTensor::Mbarrier | SyncTensor::Mbarriers => Some("%b"),
            SyncTensor::TensorMap => Some("%map"),
        };
        let number = match number {
            SyncNumber::None => None,
            SyncNumber::Any(n) | SyncNumber::OrOne(n) | SyncNumber::Constant(n) => Some(n),
        };
        let args: Vec<&str> = tensor.into_iter().chain(number).collect();
        if args.is_empty() { self.to_string() } else { format!("{self}({})", args.join(", ")) }
    }
}
