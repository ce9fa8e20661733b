//! Long computations look whether their statement was killed: often enough, and end with error 1317.

use std::cell::Cell;

use nfold_types::{CHECKPOINT_WORK, Checkpoint};

use super::Fiber;
use crate::Loans;
use crate::env::Checkpoints;

#[test]
fn checkpoint_ticks_when_work_is_due() {
    let left = Cell::new(3);
    let mut fiber = Fiber {
        loans: Loans::default(),
        kill_after: Some(&left),
    };
    let checkpoints = Checkpoints::new(&mut fiber);
    for _ in 0..2 * CHECKPOINT_WORK / 10 {
        checkpoints.checkpoint(10).unwrap();
    }
    assert_eq!(left.get(), 1, "once for each CHECKPOINT_WORK");
    assert!(checkpoints.checkpoint(u64::MAX).is_err(), "killed");
}
