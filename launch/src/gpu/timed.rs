//! Executes pieces of work in the GPU's stream with a time limit, and measures their times by
//! events of the driver. The L2 cache is flushed before each measured piece. `sustain` repeats a
//! piece of work until its time has settled or a given time has passed.
#![allow(unsafe_code, reason = "the CUDA driver's interface")]

use super::driver::{Kept, failed, hangs, is_hanging};
use super::{Buffer, Function, Gpu};
use crate::Launch;
use crate::{Arguments, Fallible, LaidOut, Sustained, Timing, refused};
use carbyne_ir::diag::{Code, Diagnostic};
use cust::error::CudaError;
use cust::event::{Event, EventFlags, EventStatus};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Work that can be enqueued in the GPU's stream repeatedly.
pub trait Work {
    /// The name in messages, such as "the kernel `gemm`".
    fn name(&self) -> &str;

    /// Enqueues the work in the stream once, without waiting for it.
    ///
    /// # Errors
    /// Errors of the driver or of a library.
    fn enqueue(&self, gpu: &Gpu) -> Fallible<()>;
}

/// Kernels that run one after another, each with its launch and its arguments.
pub struct Sequence<'f> {
    name: String,
    parts: Vec<(&'f Function<'f>, Launch, LaidOut)>,
}

impl<'f> Sequence<'f> {
    /// A sequence of one kernel.
    ///
    /// # Errors
    /// [`Code::LaunchFailed`] if the arguments do not fit the kernel.
    pub fn new(
        function: &'f Function<'f>,
        launch: Launch,
        arguments: &Arguments,
    ) -> Fallible<Sequence<'f>> {
        let name = format!("the kernel `{}`", function.name());
        Sequence { name, parts: vec![] }.then(function, launch, arguments)
    }

    /// Appends another kernel.
    ///
    /// # Errors
    /// The errors of [`Sequence::new`].
    pub fn then(
        mut self,
        function: &'f Function<'f>,
        launch: Launch,
        arguments: &Arguments,
    ) -> Fallible<Sequence<'f>> {
        function.takes(launch, arguments)?;
        self.parts.push((function, launch, arguments.laid_out()));
        Ok(self)
    }
}

impl Work for Sequence<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn enqueue(&self, gpu: &Gpu) -> Fallible<()> {
        let mut parts = self.parts.iter().filter(|(_, launch, _)| launch.grid > 0);
        parts.try_for_each(|(function, launch, arguments)| {
            // SAFETY: the driver copies the arguments before it returns, and never more than
            // `LaidOut` has; the function belongs to a live module.
            let launched = unsafe {
                gpu.stream.launch(
                    function.inner(),
                    launch.grid,
                    launch.block,
                    launch.shared,
                    arguments.pointers(),
                )
            };
            let what = || format!("the kernel `{}` cannot be launched", function.name());
            launched.map_err(|e| failed(e, &what()))
        })
    }
}

/// Maximum number of pieces of work in the stream. With their events and flushes these are fewer
/// than the number at which the driver blocks.
const IN_FLIGHT: usize = 192;

impl Gpu {
    /// Executes a piece of work and waits for its end, at most for `patience`.
    ///
    /// A kernel accesses only memory of the GPU, to which there are no references. A wrong kernel
    /// therefore ends in an error or in wrong numbers.
    ///
    /// # Errors
    /// [`Code::LaunchFailed`], [`Code::Unending`]. After `Unending` this process can no longer use
    /// the GPU, and nothing is freed.
    pub fn run(&self, work: &dyn Work, patience: Duration) -> Fallible<()> {
        let done = event(EventFlags::DISABLE_TIMING)?;
        work.enqueue(self)?;
        done.record(&self.stream).map_err(|e| failed(e, "the GPU does not accept an event"))?;
        wait(&done, work.name(), patience)
    }

    /// Launches a kernel and waits for its end, at most for `patience`.
    ///
    /// # Errors
    /// The errors of [`Gpu::run`].
    pub fn launch(
        &self,
        function: &Function<'_>,
        launch: Launch,
        arguments: &Arguments,
        patience: Duration,
    ) -> Fallible<()> {
        self.run(&Sequence::new(function, launch, arguments)?, patience)
    }

    /// Whether the GPU can still be used. It cannot after a kernel that hangs, or after one that
    /// the GPU aborted. A kernel that could not be launched does no harm.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        let answers = || {
            let done = event(EventFlags::DISABLE_TIMING)?;
            done.record(&self.stream).map_err(untimed)?;
            done.query().map_err(untimed)
        };
        !is_hanging() && answers().is_ok()
    }

    /// Executes pieces of work in turn, and returns the time of each in seconds, in their order.
    /// Before each one the L2 cache is flushed by writing `flush`, which must be larger. Many
    /// pieces are enqueued before the first one ends, so that the GPU is never idle. `patience`
    /// limits each piece, from the end of the previous one.
    ///
    /// # Errors
    /// The errors of [`Gpu::run`].
    pub fn time_in_turn<'w>(
        &self,
        works: impl IntoIterator<Item = &'w dyn Work>,
        flush: &Buffer,
        patience: Duration,
    ) -> Fallible<Vec<f64>> {
        let mut seconds = vec![];
        let mut in_flight: VecDeque<(&dyn Work, Between)> = VecDeque::new();
        for (i, work) in works.into_iter().enumerate() {
            let events = match in_flight.len() < IN_FLIGHT {
                true => Between::new()?,
                false => match in_flight.pop_front() {
                    Some((earlier, events)) => {
                        seconds.push(events.seconds(earlier, patience)?);
                        events
                    }
                    None => Between::new()?,
                },
            };
            flush.fill_later(self, i as u8)?;
            events.start.record(&self.stream).map_err(untimed)?;
            work.enqueue(self)?;
            events.end.record(&self.stream).map_err(untimed)?;
            in_flight.push_back((work, events));
        }
        for (work, events) in in_flight {
            seconds.push(events.seconds(work, patience)?);
        }
        Ok(seconds)
    }

    /// Executes a piece of work repeatedly and measures it, after a few executions that are not
    /// measured. Measures as [`Gpu::time_in_turn`].
    ///
    /// # Errors
    /// The errors of [`Gpu::run`].
    pub fn time(
        &self,
        work: &dyn Work,
        n_launches: usize,
        flush: &Buffer,
        patience: Duration,
    ) -> Fallible<Timing> {
        const WARM: usize = 3;
        let all = std::iter::repeat_n(work, WARM + n_launches);
        let seconds = self.time_in_turn(all, flush, patience)?;
        Ok(Timing::new(seconds.into_iter().skip(WARM).collect()))
    }

    /// Executes a piece of work without pauses for the time `long`, and measures each execution.
    /// Measures as [`Gpu::time_in_turn`].
    ///
    /// # Errors
    /// The errors of [`Gpu::run`].
    pub fn time_for(
        &self,
        work: &dyn Work,
        long: Duration,
        flush: &Buffer,
        patience: Duration,
    ) -> Fallible<Vec<f64>> {
        let began = Instant::now();
        let more = std::iter::repeat(work).take_while(|_| began.elapsed() < long);
        self.time_in_turn(more, flush, patience)
    }

    /// Executes a piece of work without pauses until its time has settled, or until `most` has
    /// passed: a card under load becomes warmer, and its clock lower. `one` is the approximate time
    /// of one execution in seconds. Measures as [`Gpu::time_in_turn`].
    ///
    /// # Errors
    /// The errors of [`Gpu::run`].
    pub fn sustain(
        &self,
        work: &dyn Work,
        (one, most): (f64, Duration),
        flush: &Buffer,
        patience: Duration,
    ) -> Fallible<Sustained> {
        /// Seconds of one window of measurements.
        const WINDOW: f64 = 0.1;
        /// Maximum number of executions in one window.
        const MOST: f64 = 512.0;
        let n = (WINDOW / one.max(1e-9)).clamp(2.0, MOST) as usize;
        let began = Instant::now();
        let mut windows = vec![];
        loop {
            let seconds = self.time_in_turn(std::iter::repeat_n(work, n), flush, patience)?;
            windows.push(Timing::new(seconds));
            let elapsed = began.elapsed();
            let settled = Sustained::has_settled(&windows);
            if settled || elapsed >= most {
                let timing = windows.pop().unwrap_or_default();
                return Ok(Sustained { timing, seconds: elapsed.as_secs_f64(), settled });
            }
        }
    }

    /// A buffer that is larger than the L2 cache, for flushing it.
    ///
    /// # Errors
    /// [`Code::GpuMemory`].
    pub fn flush_buffer(&self) -> Fallible<Buffer> {
        self.allocate((2 * self.info().l2).clamp(32 << 20, 1 << 30))
    }
}

/// Two events around a piece of work.
struct Between {
    start: Kept<Event>,
    end: Kept<Event>,
}

impl Between {
    fn new() -> Fallible<Between> {
        Ok(Between { start: event(EventFlags::DEFAULT)?, end: event(EventFlags::DEFAULT)? })
    }

    /// Waits for the second event, and returns the seconds since the first.
    fn seconds(&self, work: &dyn Work, patience: Duration) -> Fallible<f64> {
        wait(&self.end, work.name(), patience)?;
        Ok(f64::from(self.end.elapsed_time_f32(&self.start).map_err(untimed)?) / 1e3)
    }
}

fn event(flags: EventFlags) -> Fallible<Kept<Event>> {
    Event::new(flags).map(Kept::new).map_err(|e| failed(e, "no event can be created"))
}

fn untimed(error: CudaError) -> Box<Diagnostic> {
    failed(error, "the GPU cannot be timed")
}

/// Waits for an event by polling, because blocking in the driver would have no limit.
fn wait(event: &Event, what: &str, patience: Duration) -> Fallible<()> {
    let began = Instant::now();
    loop {
        match event.query() {
            Ok(EventStatus::Ready) => return Ok(()),
            Ok(EventStatus::NotReady) => {}
            Err(e) => return Err(failed(e, &format!("{what} failed"))),
        }
        let elapsed = began.elapsed();
        if elapsed > patience {
            hangs();
            return Err(refused(
                Code::Unending,
                format!("{what} has not ended after {:.0} s", patience.as_secs_f64()),
                "run `carbyne simulate` to find barriers that not all threads reach, or raise \
                 `--timeout`",
            ));
        }
        // Short kernels end within the first polls.
        match elapsed < Duration::from_millis(5) {
            true => std::thread::yield_now(),
            false => std::thread::sleep(Duration::from_micros(200)),
        }
    }
}
