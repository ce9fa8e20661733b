//! A wait that gives other sessions of the thread a turn, and is over at once.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use nfold_store::{Stop, Wait};

use crate::error::{Step, TxnError};

/// Undo records that a call applies before it lets other sessions run: some milliseconds of work.
pub(crate) const RECORDS: u32 = 64;

/// Pending once.
struct Turn {
    given: bool,
}

impl Future for Turn {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.given, true) {
            return Poll::Ready(());
        }
        task.waker().wake_by_ref();
        Poll::Pending
    }
}

/// To be called with each undo record of a rollback, outside of mini-transactions. `left` counts
/// down from [`RECORDS`]; at zero the rollback waits for a turn, and its call is made again.
#[inline]
pub(crate) fn count_record(left: &mut u32) -> Step<()> {
    *left -= 1;
    match *left {
        0 => Err(wait()),
        _ => Ok(()),
    }
}

/// The wait for a turn. Not inside of a mini-transaction.
pub(crate) fn wait() -> Stop<TxnError> {
    Stop::Wait(Wait::boxed(Turn { given: false }))
}
