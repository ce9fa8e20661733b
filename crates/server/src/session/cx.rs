//! The executor's view of the fiber, and the threads that run blocking calls.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use nfold_exec::env::Interrupt as ExecInterrupt;
use nfold_exec::{ExecCx, OperatorPool, StatementFiber};
use nfold_observe::contention;
use nfold_types::{ErrorCode, SqlError};
use parking_lot::{Condvar, Mutex};

use crate::net::fiber::handler::memory_exceeded;
use crate::net::worker::{FiberCx, Interrupt, Waiter};

/// The executor's context over a fiber.
pub struct FiberExec<'a, 'b> {
    pub fiber: &'a FiberCx<'b>,
}

fn lift(why: Interrupt) -> ExecInterrupt {
    match why {
        Interrupt::QueryKilled => ExecInterrupt::Killed,
        Interrupt::Killed | Interrupt::ConnectionLost => ExecInterrupt::ConnectionKilled,
        Interrupt::Timeout => ExecInterrupt::Deadline,
        Interrupt::StatementTimeout => ExecInterrupt::TimedOut,
        Interrupt::Memory(limit) => ExecInterrupt::Error(memory_exceeded(limit)),
    }
}

impl FiberExec<'_, '_> {
    /// Between two statements of one text: yields if the time slice is over.
    ///
    /// # Errors
    /// The session was killed, or is out of memory.
    pub fn between_statements(&self) -> Result<(), SqlError> {
        let waited = self.fiber.between_statements();
        waited.map_err(|why| lift(why).to_sql())
    }
}

/// A future that is never ready: a sleep waits for it until its deadline.
struct NeverReady;

impl Future for NeverReady {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

impl StatementFiber for FiberExec<'_, '_> {
    fn wait(
        &mut self,
        w: Pin<&mut dyn Future<Output = ()>>,
        deadline: Option<Instant>,
    ) -> Result<(), ExecInterrupt> {
        self.fiber.wait(w, deadline).map_err(lift)
    }

    fn wait_through(&mut self, w: Pin<&mut dyn Future<Output = ()>>) {
        self.fiber.wait_through(w);
    }

    fn tick(&mut self) -> Result<(), ExecInterrupt> {
        self.fiber.tick().map_err(lift)
    }

    fn interrupted(&self) -> Result<(), ExecInterrupt> {
        self.fiber.interrupted().map_err(lift)
    }

    fn offload(&mut self, job: Box<dyn FnOnce() + Send>) -> Result<(), ExecInterrupt> {
        let done = lend_out(job);
        (self.fiber).wait_through(std::pin::pin!(Finished(done.clone())));
        (self.fiber.memory).add(done.allocated.load(Relaxed));
        Ok(())
    }

    fn offload_stoppable(
        &mut self,
        job: Box<dyn FnOnce() + Send>,
        asked: &AtomicBool,
    ) -> Result<(), ExecInterrupt> {
        let done = lend_out(job);
        let mut end = std::pin::pin!(Finished(done.clone()));
        // Only a wait with a deadline ends when the client has closed its side.
        let far = Instant::now().checked_add(Duration::from_secs(365 * 24 * 3600));
        if self.fiber.wait(end.as_mut(), far).is_err() {
            asked.store(true, Relaxed);
        }
        // The job owns its data until it has ended, so the wait cannot be abandoned.
        self.fiber.wait_through(end);
        (self.fiber.memory).add(done.allocated.load(Relaxed));
        Ok(())
    }

    fn limit_time(&mut self, limit: Option<Duration>) {
        self.fiber.limit_statement(limit);
    }

    fn sleep(&mut self, time: Duration) -> Result<(), ExecInterrupt> {
        match self
            .fiber
            .wait(std::pin::pin!(NeverReady), Some(Instant::now() + time))
        {
            Err(Interrupt::Timeout) | Ok(()) => Ok(()),
            Err(why) => Err(lift(why)),
        }
    }
}

impl ExecCx for FiberExec<'_, '_> {
    fn operator_pool(&self) -> &OperatorPool {
        &self.fiber.pooled().operator_pool
    }
}

/// Whether a job has ended, and the task that waits for it.
#[derive(Default)]
struct JobState {
    state: Mutex<(bool, Option<Waker>)>,
    /// The memory that the thread has allocated for the job, minus what it has freed.
    allocated: AtomicI64,
}

struct Finished(Arc<JobState>);

impl Future for Finished {
    type Output = ();

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.state.lock();
        if state.0 {
            return Poll::Ready(());
        }
        state.1 = Some(task.waker().clone());
        Poll::Pending
    }
}

impl JobState {
    fn finish(&self) {
        let waker = {
            let mut state = self.state.lock();
            state.0 = true;
            state.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Reports the end of a job, even after a panic.
struct FinishOnDrop(Arc<JobState>);

impl Drop for FinishOnDrop {
    fn drop(&mut self) {
        self.0.finish();
    }
}

type Job = (Box<dyn FnOnce() + Send>, Arc<JobState>);

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    idle: usize,
    threads: usize,
}

/// Threads that may block. They are created on demand, at most [`Offload::MAX_THREADS`], and never
/// end.
#[derive(Default)]
struct Offload(Mutex<Queue>, Condvar);

/// The pool of the process. A static, so that sessions count no reference.
static OFFLOAD: LazyLock<Offload> = LazyLock::new(Offload::default);

impl Offload {
    /// The maximum number of concurrent blocking calls; further ones are queued.
    const MAX_THREADS: usize = 16;

    fn push(&'static self, job: Box<dyn FnOnce() + Send>, done: Arc<JobState>) {
        let Offload(queue, wake) = self;
        let mut q = queue.lock();
        q.jobs.push_back((job, done));
        // Threads that were notified count as idle until they wake up.
        if q.jobs.len() <= q.idle || q.threads >= Self::MAX_THREADS {
            wake.notify_one();
            return;
        }
        q.threads += 1;
        let spawned = std::thread::Builder::new()
            .name("nfold-blocking".into())
            .spawn(move || self.work());
        if let Err(e) = spawned {
            tracing::error!("cannot start a thread for a blocking call: {e}");
            q.threads -= 1;
            if q.threads == 0 {
                // No thread would ever take the job, so it runs here.
                let job = q.jobs.pop_back();
                drop(q);
                job.into_iter().for_each(run);
            }
        }
    }

    fn work(&self) {
        let Offload(queue, wake) = self;
        let mut q = queue.lock();
        loop {
            if let Some(job) = q.jobs.pop_front() {
                drop(q);
                run(job);
                q = queue.lock();
            } else {
                q.idle += 1;
                wake.wait(&mut q);
                q.idle -= 1;
            }
        }
    }
}

fn run((job, done): Job) {
    let before = nfold_memory::allocated_here();
    let finish = FinishOnDrop(done);
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(job)).is_err() {
        tracing::error!("a blocking call panicked");
    }
    let allocated = nfold_memory::allocated_here() - before;
    finish.0.allocated.store(allocated, Relaxed);
}

/// Runs `job` where it may block.
pub(crate) fn apart<T: Send + 'static>(
    fiber: &mut dyn StatementFiber,
    job: impl FnOnce() -> T + Send + 'static,
) -> Result<T, SqlError> {
    let slot = Arc::new(Mutex::new(None));
    let result = slot.clone();
    fiber
        .offload(Box::new(move || {
            let value = job();
            *result.lock() = Some(value);
        }))
        .map_err(ExecInterrupt::to_sql)?;
    let failed = || {
        let message = "reading or writing a file failed";
        SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, message)
    };
    slot.lock().take().ok_or_else(failed)
}

/// Queues a job for a thread that may block, on behalf of the same connection.
fn lend_out(job: Box<dyn FnOnce() + Send>) -> Arc<JobState> {
    let done = Arc::new(JobState::default());
    let connection = contention::acting_for();
    let job = move || {
        contention::act_for(connection);
        job();
    };
    OFFLOAD.push(Box::new(job), done.clone());
    done
}

/// Runs `f` on a thread that may block, and returns its result; `None` after a panic. A KILL sets
/// `asked`.
pub fn blocking<T: Send + 'static>(
    cx: &mut dyn ExecCx,
    asked: &AtomicBool,
    f: impl FnOnce() -> T + Send + 'static,
) -> Result<Option<T>, ExecInterrupt> {
    let slot = Arc::new(Mutex::new(None));
    let result = slot.clone();
    let job = Box::new(move || {
        let value = f();
        *result.lock() = Some(value);
    });
    cx.offload_stoppable(job, asked)?;
    let value = slot.lock().take();
    Ok(value)
}
