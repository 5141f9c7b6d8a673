//! Controls GPUs through the CUDA driver: it loads kernels, allocates memory, launches and
//! measures. A [`Gpu`] has a context of its own; [`Devices`] share the context of other libraries.
//!
//! - `driver`: statuses of the driver as diagnostics; objects that outlive a hung kernel.
//! - `memory`: [`Buffer`]. `kernel`: [`Module`], [`Function`]. `timed`: work in the stream and its
//!   time.
//! - `loaded`, `devices`: [`Loaded`] and [`Devices`], kernels beside other libraries of a process.
//! - `tensor_map`: the encoder of tensor maps. `cublas`: products of NVIDIA's library.

mod cublas;
mod devices;
mod driver;
mod kernel;
mod loaded;
mod memory;
mod tensor_map;
mod timed;

pub use cublas::{CUBLAS_VARIABLE, Cublas, CublasLibrary, Epilogue, Product, Transposed};
pub use devices::Devices;
pub use kernel::{Function, Module};
pub use loaded::{Context, Entered, Loaded};
pub use memory::Buffer;
pub use tensor_map::TensorMap;
pub use timed::{Sequence, Work};

use crate::{Fallible, refused};
use carbyne_ir::diag::Code;
use cust::device::{Device, DeviceAttribute};
use cust::stream::{Stream, StreamFlags};
use cust::{CudaApiVersion, CudaFlags};
use driver::{Kept, failed};

/// The properties of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The name that the driver reports.
    pub name: String,
    /// Major and minor compute capability.
    pub capability: (u32, u32),
    /// Major and minor CUDA version that the driver supports.
    pub driver: (i32, i32),
    /// Size of its memory, in bytes.
    pub memory: u64,
    /// Size of its L2 cache, in bytes.
    pub l2: usize,
    /// Number of streaming multiprocessors.
    pub multiprocessors: u32,
}

/// The oldest supported driver: that of CUDA 11.2.
const OLDEST_DRIVER: (i32, i32) = (11, 2);

/// Returns the properties of the GPU with this index. No context is created.
///
/// # Errors
/// [`Code::NoDriver`], [`Code::NoGpu`], [`Code::OldDriver`].
pub fn info(number: u32) -> Fallible<DeviceInfo> {
    if !driver::is_open() {
        return Err(driver::missing());
    }
    cust::init(CudaFlags::empty()).map_err(|e| failed(e, "the driver cannot be started"))?;
    let version = CudaApiVersion::get();
    let version = version.map_err(|e| failed(e, "the driver does not report its version"))?;
    let driver = (version.major(), version.minor());
    if driver < OLDEST_DRIVER {
        return Err(old_driver(driver, OLDEST_DRIVER));
    }
    let n = Device::num_devices().map_err(|e| failed(e, "GPUs cannot be counted"))?;
    if number >= n {
        return Err(refused(
            Code::NoGpu,
            match n {
                0 => "the driver finds no GPU".to_owned(),
                n => format!("there is no GPU {number}; the driver finds {n}"),
            },
            "choose a GPU that `nvidia-smi` lists with `--gpu N`, and unset CUDA_VISIBLE_DEVICES",
        ));
    }
    let asked = "the GPU does not respond";
    let device = Device::get_device(number).map_err(|e| failed(e, asked))?;
    let attribute = |which| {
        let value = device.get_attribute(which).map_err(|e| failed(e, asked))?;
        Ok::<u32, Box<_>>(u32::try_from(value).unwrap_or(0))
    };
    Ok(DeviceInfo {
        name: device.name().map_err(|e| failed(e, asked))?,
        capability: (
            attribute(DeviceAttribute::ComputeCapabilityMajor)?,
            attribute(DeviceAttribute::ComputeCapabilityMinor)?,
        ),
        driver,
        memory: device.total_memory().map_err(|e| failed(e, asked))? as u64,
        l2: attribute(DeviceAttribute::L2CacheSize)? as usize,
        multiprocessors: attribute(DeviceAttribute::MultiprocessorCount)?,
    })
}

/// A GPU with its own context and stream.
pub struct Gpu {
    // Dropped in this order.
    stream: Kept<Stream>,
    _context: Kept<cust::context::Context>,
    info: DeviceInfo,
}

impl Gpu {
    /// Opens the driver and the GPU with this index.
    ///
    /// # Errors
    /// [`Code::NoDriver`], [`Code::NoGpu`], [`Code::OldDriver`].
    pub fn open(number: u32) -> Fallible<Gpu> {
        let info = info(number)?;
        let device =
            Device::get_device(number).map_err(|e| failed(e, "the GPU does not respond"))?;
        let context = cust::context::Context::new(device)
            .map_err(|e| failed(e, "no context can be created"))?;
        let stream = Stream::new(StreamFlags::NON_BLOCKING, None);
        let stream = stream.map_err(|e| failed(e, "no stream can be created"))?;
        Ok(Gpu { stream: Kept::new(stream), _context: Kept::new(context), info })
    }

    /// The properties of the GPU.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// Checks that the driver runs code of a compiler of this CUDA version.
    ///
    /// # Errors
    /// [`Code::OldDriver`] if the driver has an older major version. Minor versions may differ.
    pub fn runs_code_of(&self, compiler: (i32, i32)) -> Fallible<()> {
        match self.info.driver.0 < compiler.0 {
            true => Err(old_driver(self.info.driver, (compiler.0, 0))),
            false => Ok(()),
        }
    }
}

fn old_driver(is: (i32, i32), wanted: (i32, i32)) -> Box<carbyne_ir::diag::Diagnostic> {
    refused(
        Code::OldDriver,
        format!(
            "the CUDA driver supports version {}.{}, but {}.{} is needed",
            is.0, is.1, wanted.0, wanted.1
        ),
        "install a newer NVIDIA driver, or compile with an older NVRTC and pass `--cubin FILE`",
    )
}
