//! Lists the synchronization statements ([`SyncOp`]: `mbarrier.wait`, `fence.async`,
//! `wgmma.commit`, ..): what each one does, and which operands it takes. The parser, messages and
//! the resolver use this one table.

use crate::scalar::spelled;

spelled! {
    /// The operation of a synchronization statement. Only [`SyncOp::MbarrierWait`] and the other
    /// waits block; all others return at once. The atom table says which threads execute an
    /// operation together, and which architectures have it.
    SyncOp {
        /// Initializes the mbarriers of a view with the number of arrivals that complete a phase.
        MbarrierInit = "mbarrier.init",
        /// Arrives once, or the given number of times.
        MbarrierArrive = "mbarrier.arrive",
        /// Arrives once, and adds a number of bytes of asynchronous copies for which the phase
        /// waits.
        MbarrierExpect = "mbarrier.expect",
        /// Waits until the phase of this parity (0 or 1) is complete. On a fresh mbarrier, a wait
        /// for parity 1 returns at once.
        MbarrierWait = "mbarrier.wait",
        /// Makes the asynchronous copies that the thread has started so far arrive on completion.
        /// This arrival is one of those that the phase counts.
        MbarrierAsyncArrive = "mbarrier.async_arrive",
        /// Makes initialized mbarriers visible to the cluster and to asynchronous copies.
        FenceMbarrierInit = "fence.mbarrier_init",
        /// Orders earlier accesses of the thread to shared memory before later asynchronous copies.
        FenceAsync = "fence.async",
        /// Arrives at the barrier of the cluster.
        ClusterArrive = "cluster.arrive",
        /// Arrives at the barrier of the cluster without ordering memory accesses.
        ClusterArriveRelaxed = "cluster.arrive_relaxed",
        /// Waits until all threads of the cluster have arrived.
        ClusterWait = "cluster.wait",
        /// Closes the thread's group of asynchronous copies.
        AsyncCommit = "async.commit",
        /// Waits until at most this many of the thread's groups are in flight.
        AsyncWait = "async.wait",
        /// Closes the thread's group of bulk copies.
        BulkCommit = "bulk.commit",
        /// Waits until at most this many of the thread's bulk groups are in flight.
        BulkWait = "bulk.wait",
        /// Waits until at most this many of the thread's bulk groups still read their sources.
        BulkWaitRead = "bulk.wait_read",
        /// Orders accesses to registers and shared memory before later MatMuls of the warp group.
        WgmmaFence = "wgmma.fence",
        /// Closes the warp group's group of asynchronous MatMuls.
        WgmmaCommit = "wgmma.commit",
        /// Waits until at most this many of the warp group's groups are in flight.
        WgmmaWait = "wgmma.wait",
        /// Raises the number of registers that each thread of the warp group may use to this
        /// number.
        RegistersInc = "registers.inc",
        /// Lowers the number of registers that each thread of the warp group may use to this
        /// number.
        RegistersDec = "registers.dec",
        /// Waits until the preceding kernels are complete.
        GridWait = "grid.wait",
        /// Lets dependent kernels start.
        GridLaunch = "grid.launch",
        /// Prefetches a tensor map, so that the first copy with it does not wait.
        Prefetch = "prefetch",
    }
}

/// The operands of a synchronization statement: the tensor, then the number.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SyncSignature {
    /// The view, if any.
    pub tensor: SyncTensor,
    /// The number, if any.
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
    /// An expression with this meaning.
    Any(&'static str),
    /// An expression with this meaning; 1 if omitted.
    OrOne(&'static str),
    /// A constant with this meaning.
    Constant(&'static str),
}

impl SyncOp {
    /// Whether it arrives at an mbarrier, now or on completion of asynchronous work.
    pub fn arrives(self) -> bool {
        matches!(
            self,
            SyncOp::MbarrierArrive | SyncOp::MbarrierExpect | SyncOp::MbarrierAsyncArrive
        )
    }
    /// Whether it takes `after=`, a register that must have its value before the statement is
    /// executed.
    pub fn takes_after(self) -> bool {
        self == SyncOp::MbarrierArrive
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

    /// An example of its syntax: `mbarrier.arrive(%b, count)`.
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
