//! Loading, launching and timing kernels.
#![allow(unsafe_code, reason = "the CUDA driver's interface")]

use super::driver::{Kept, failed, hangs, of_status};
use super::{Buffer, Gpu};
use crate::{Arguments, Binary, Fallible, LaidOut, Sustained, Timing, refused};
use carbyne_codegen::CudaKernel;
use carbyne_codegen::nvrtc::Usage;
use carbyne_ir::diag::{Code, Diagnostic};
use cust::error::CudaError;
use cust::event::{Event, EventFlags, EventStatus};
use cust::function::FunctionAttribute;
use cust::module::Module as Loaded;
use cust::sys;
use std::ffi::CString;
use std::time::{Duration, Instant};

/// Machine code on the GPU.
pub struct Module {
    loaded: Kept<Loaded>,
}

/// A kernel that can be launched.
pub struct Function<'m> {
    inner: cust::function::Function<'m>,
    name: String,
    n_params: usize,
    usage: Usage,
}

/// How a kernel is launched.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks; one dimension.
    pub grid: u32,
    /// Threads of a block; one dimension.
    pub block: u32,
    /// Dynamic shared memory of a block, in bytes.
    pub shared: u32,
}

impl Launch {
    /// Of a printed kernel, with a grid of that many blocks.
    ///
    /// # Errors
    /// [`Code::LaunchFailed`] for what no launch can take.
    pub fn of(kernel: &CudaKernel, grid: i64) -> Fallible<Launch> {
        let small = |v: i64| u32::try_from(v).ok().filter(|v| i32::try_from(*v).is_ok());
        match (small(grid), small(kernel.block), small(kernel.smem_bytes)) {
            (Some(grid), Some(block), Some(shared)) if grid > 0 => {
                Ok(Launch { grid, block, shared })
            }
            _ => Err(refused(
                Code::LaunchFailed,
                format!("no launch has {grid} blocks of {} threads", kernel.block),
                "launch from 1 to 2^31 - 1 blocks",
            )),
        }
    }
}

/// From here on shared memory of a block must be asked for.
const SHARED_UNASKED: u32 = 48 << 10;

impl Gpu {
    /// Loads a compiled kernel; PTX is compiled by the driver.
    ///
    /// # Errors
    /// [`Code::WrongGpu`], [`Code::OldDriver`], [`Code::BadBinary`].
    pub fn load(&self, binary: &Binary) -> Fallible<Module> {
        let loaded = match binary {
            Binary::Cubin(bytes) => Loaded::from_cubin(bytes, &[]),
            Binary::Ptx(text) => {
                let text = CString::new(text.as_str()).map_err(|_| {
                    refused(Code::BadBinary, "the PTX holds a NUL byte", "compile the kernel again")
                })?;
                Loaded::from_ptx_cstr(&text, &[])
            }
        };
        let loaded = loaded.map_err(|e| {
            let mut d = *failed(e, &format!("the {} cannot be loaded", binary.kind()));
            if d.code == Code::LaunchFailed {
                d.code = Code::BadBinary;
                d.help = Some(
                    "compile the kernel again, with a toolkit no newer than the driver".into(),
                );
            }
            let (major, minor) = self.info().driver;
            d.note(format!("the driver is of CUDA {major}.{minor}"))
        });
        Ok(Module { loaded: Kept::new(loaded.map_err(Box::new)?) })
    }

    /// Launches a kernel and waits for its end, for so long at most.
    ///
    /// Whatever the kernel does, it does to the GPU's memory, to which there are no references: what it
    /// gets wrong ends in an error or in wrong numbers.
    ///
    /// # Errors
    /// [`Code::LaunchFailed`], [`Code::Unending`]. After the latter the GPU is of no more use to this
    /// process, and nothing is freed.
    pub fn launch(
        &self,
        function: &Function<'_>,
        launch: Launch,
        arguments: &Arguments,
        patience: Duration,
    ) -> Fallible<()> {
        function.takes(launch, arguments)?;
        let done = event(EventFlags::DISABLE_TIMING)?;
        self.enqueue(function, launch, &arguments.laid_out())?;
        done.record(&self.stream).map_err(|e| failed(e, "the kernel cannot be waited for"))?;
        wait(&done, &function.name, patience)
    }

    /// Launches a kernel again and again and measures each launch, after a few that are not measured.
    /// Before each the L2 cache is flushed, by writing `flush`, which is larger.
    ///
    /// # Errors
    /// As for [`Gpu::launch`].
    pub fn time(
        &self,
        function: &Function<'_>,
        launch: Launch,
        arguments: &Arguments,
        n_launches: usize,
        flush: &Buffer,
        patience: Duration,
    ) -> Fallible<Timing> {
        const WARM: usize = 3;
        function.takes(launch, arguments)?;
        let began = Instant::now();
        let laid_out = arguments.laid_out();
        let mut seconds = Vec::with_capacity(n_launches);
        let (start, end) = (event(EventFlags::DEFAULT)?, event(EventFlags::DEFAULT)?);
        for i in 0..n_launches + WARM {
            flush.fill_later(self, i as u8)?;
            self.enqueue_between(function, (launch, &laid_out), (&start, &end))?;
            wait(&end, &function.name, patience.saturating_sub(began.elapsed()))?;
            if i >= WARM {
                seconds.push(between(&start, &end)?);
            }
        }
        Ok(Timing::new(seconds))
    }

    /// Launches a kernel without a pause until what it takes has settled, or `most` has passed: a card that has worked for a while
    /// is warmer, and its clocks lower. `one` is what a launch takes about, in seconds. Before each the L2 cache is flushed, as by
    /// [`Gpu::time`].
    ///
    /// # Errors
    /// As for [`Gpu::launch`].
    pub fn sustain(
        &self,
        function: &Function<'_>,
        (launch, arguments): (Launch, &Arguments),
        (one, most): (f64, Duration),
        flush: &Buffer,
        patience: Duration,
    ) -> Fallible<Sustained> {
        /// Seconds of launches that are measured together.
        const WINDOW: f64 = 0.1;
        /// Launches that lie in the stream at once, at most.
        const MOST: f64 = 512.0;
        function.takes(launch, arguments)?;
        let n = (WINDOW / one.max(1e-9)).clamp(2.0, MOST) as usize;
        let mut events = vec![];
        for _ in 0..n {
            events.push((event(EventFlags::DEFAULT)?, event(EventFlags::DEFAULT)?));
        }
        let laid_out = arguments.laid_out();
        let began = Instant::now();
        let mut windows = vec![];
        loop {
            for (i, (start, end)) in events.iter().enumerate() {
                flush.fill_later(self, i as u8)?;
                self.enqueue_between(function, (launch, &laid_out), (start, end))?;
            }
            let (_, last) = &events[n - 1];
            wait(last, &function.name, patience.saturating_sub(began.elapsed()))?;
            let mut seconds = Vec::with_capacity(n);
            for (start, end) in &events {
                seconds.push(between(start, end)?);
            }
            windows.push(Timing::new(seconds));
            let elapsed = began.elapsed();
            let settled = Sustained::has_settled(&windows);
            if settled || elapsed >= most {
                let timing = windows.pop().unwrap_or_default();
                return Ok(Sustained { timing, seconds: elapsed.as_secs_f64(), settled });
            }
        }
    }

    /// A buffer that is larger than the L2 cache, for [`Gpu::time`] and [`Gpu::sustain`].
    ///
    /// # Errors
    /// [`Code::GpuMemory`].
    pub fn flush_buffer(&self) -> Fallible<Buffer> {
        self.allocate((2 * self.info().l2).clamp(32 << 20, 1 << 30))
    }

    /// Puts a launch into the stream, between two events.
    fn enqueue_between(
        &self,
        function: &Function<'_>,
        (launch, arguments): (Launch, &LaidOut),
        (start, end): (&Event, &Event),
    ) -> Fallible<()> {
        start.record(&self.stream).map_err(untimed)?;
        self.enqueue(function, launch, arguments)?;
        end.record(&self.stream).map_err(untimed)
    }

    /// Puts a launch into the stream.
    fn enqueue(
        &self,
        function: &Function<'_>,
        launch: Launch,
        arguments: &LaidOut,
    ) -> Fallible<()> {
        // SAFETY: the driver copies the arguments before it returns, and never more than `LaidOut` has;
        // the function is of a live module.
        let launched = unsafe {
            self.stream.launch(
                &function.inner,
                launch.grid,
                launch.block,
                launch.shared,
                arguments.pointers(),
            )
        };
        launched
            .map_err(|e| failed(e, &format!("the kernel `{}` cannot be launched", function.name)))
    }
}

impl Module {
    /// The kernel that was printed, ready for a launch with its shared memory.
    ///
    /// # Errors
    /// [`Code::BadBinary`] where it is not in there, [`Code::LaunchFailed`] for more shared memory than
    /// the GPU has.
    pub fn function(&self, kernel: &CudaKernel, launch: Launch) -> Fallible<Function<'_>> {
        let name = kernel.name.clone();
        if name.contains('\0') {
            return Err(refused(Code::BadBinary, "a kernel's name holds a NUL byte", "rename it"));
        }
        let inner = self.loaded.get_function(&name).map_err(|e| {
            let mut d = failed(e, &format!("the kernel `{name}` is not in the module"));
            if d.code == Code::LaunchFailed {
                d.code = Code::BadBinary;
            }
            d
        })?;
        if launch.shared > SHARED_UNASKED {
            let which = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function is of a live module.
            let status = unsafe {
                sys::cuFuncSetAttribute(inner.to_raw(), which, launch.shared.cast_signed())
            };
            if status != sys::cudaError_enum::CUDA_SUCCESS {
                let what = format!("a block cannot have {} bytes of shared memory", launch.shared);
                return Err(of_status(status as u32, &what));
            }
        }
        let attribute = |which| -> u32 {
            inner.get_attribute(which).ok().and_then(|v| u32::try_from(v).ok()).unwrap_or(0)
        };
        let usage = Usage {
            registers: attribute(FunctionAttribute::NumRegisters),
            stack: attribute(FunctionAttribute::LocalSizeBytes),
            static_smem: attribute(FunctionAttribute::SharedMemorySizeBytes),
            ..Usage::default()
        };
        Ok(Function { inner, name, n_params: kernel.params.len(), usage })
    }
}

impl Function<'_> {
    /// Registers, static shared memory and local memory, as the driver says; spills it does not say.
    #[must_use]
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    fn takes(&self, launch: Launch, arguments: &Arguments) -> Fallible<()> {
        if arguments.len() == self.n_params && launch.grid > 0 && launch.block > 0 {
            return Ok(());
        }
        let (name, n) = (&self.name, self.n_params);
        let text = format!("`{name}` takes {n} arguments and at least one thread");
        Err(refused(Code::LaunchFailed, text, "pass the arguments of the printed kernel"))
    }
}

fn event(flags: EventFlags) -> Fallible<Kept<Event>> {
    Event::new(flags).map(Kept::new).map_err(|e| failed(e, "no event can be made"))
}

fn untimed(error: CudaError) -> Box<Diagnostic> {
    failed(error, "the kernel cannot be timed")
}

/// Seconds between two events that have passed.
fn between(start: &Event, end: &Event) -> Fallible<f64> {
    Ok(f64::from(end.elapsed_time_f32(start).map_err(untimed)?) / 1e3)
}

/// Waits for an event without blocking in the driver, which would have no end.
fn wait(event: &Event, kernel: &str, patience: Duration) -> Fallible<()> {
    let began = Instant::now();
    loop {
        match event.query() {
            Ok(EventStatus::Ready) => return Ok(()),
            Ok(EventStatus::NotReady) => {}
            Err(e) => return Err(failed(e, &format!("the kernel `{kernel}` failed"))),
        }
        let elapsed = began.elapsed();
        if elapsed > patience {
            hangs();
            return Err(refused(
                Code::Unending,
                format!(
                    "the kernel `{kernel}` has not ended after {:.0} s",
                    patience.as_secs_f64()
                ),
                "run `carbyne simulate`: it finds barriers that not all threads reach; or raise `--timeout`",
            ));
        }
        // Short kernels end within the first checks.
        match elapsed < Duration::from_millis(5) {
            true => std::thread::yield_now(),
            false => std::thread::sleep(Duration::from_micros(200)),
        }
    }
}
