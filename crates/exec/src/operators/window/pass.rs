//! One pass over the rows of a partition: computes the results of its calls for each row.

use nfold_plan::query::{AggFunc, Aggregate, FrameBound, WindowCall, WindowFunc, WindowPass};
use nfold_types::row::RowLayout;
use nfold_types::{SqlError, ValueRef};
use smallvec::SmallVec;

use super::frame::{At, Frame};
use super::rows::{Cursor, Rows};
use super::slide::Slide;
use super::{CachedCall, number};
use crate::expr::eval::tuple;
use crate::expr::eval::{EvalCx, Val, row_error};
use crate::operators::aggregate::{Acc, AggInfo, AggShape, Values};
use crate::operators::cells;
use crate::runtime::Runtime;

/// The length of the prefix of a partition's row: how many order members are equal in the row
/// before.
pub(super) const HEAD: usize = 2;

/// The shared context of all calls of a pass.
pub(super) struct PassCx<'x, 'r> {
    pub rt: &'x Runtime<'r>,
    pub eval: EvalCx<'x>,
    pub pass: &'x WindowPass,
    /// The layout of the inputs of the calls.
    pub inputs: &'x RowLayout,
    pub result: &'x RowLayout,
}

/// A call in one execution, with its constants evaluated.
pub(super) struct CallShape<'p> {
    pub call: &'p WindowCall,
    pub aggregate: Option<&'p (Aggregate, AggShape)>,
    /// Whether its values are added in their stored form.
    pub stored: bool,
    /// Positions among the inputs: of its operands, of the value that RANGE compares, and of the
    /// values that bound its frames.
    args: std::ops::Range<usize>,
    pub key: usize,
    pub start: usize,
    pub end: usize,
    /// N of NTILE, LEAD, LAG and NTH_VALUE.
    number: u64,
    pub start_rows: u64,
    pub end_rows: u64,
}

impl<'p> CallShape<'p> {
    /// # Errors
    /// 1210 and 3586 for invalid or too small numbers.
    pub fn new(
        cx: &EvalCx<'p>,
        call: &'p WindowCall,
        kept: &'p CachedCall,
    ) -> Result<CallShape<'p>, SqlError> {
        let takes_stored = |(plan, _): &(Aggregate, AggShape)| {
            Acc::new(plan).takes_stored(plan.args.first().map(|a| &a.ty))
        };
        Ok(CallShape {
            call,
            stored: kept.aggregate.as_ref().is_some_and(takes_stored),
            aggregate: kept.aggregate.as_ref(),
            args: kept.first..kept.first + call.args.len(),
            key: kept.key,
            start: kept.start,
            end: kept.end,
            number: number::of_call(cx, call)?,
            start_rows: number::of_bound(cx, call, &call.frame.start)?,
            end_rows: number::of_bound(cx, call, &call.frame.end)?,
        })
    }

    /// The aggregate that the call computes.
    pub fn info(&self) -> AggInfo<'_> {
        let (plan, shape) = self.aggregate.expect("asked of aggregates only");
        AggInfo { plan, shape }
    }

    /// An input of a row of the partition.
    #[inline]
    pub fn input<'r>(
        &self,
        cx: &PassCx<'_, '_>,
        row: &'r [u8],
        ordinal: usize,
    ) -> Result<Val<'r>, SqlError> {
        Ok(Val::from_ref(self.stored_input(cx, row, ordinal)?))
    }

    /// An input in its stored form.
    #[inline]
    fn stored_input<'r>(
        &self,
        cx: &PassCx<'_, '_>,
        row: &'r [u8],
        ordinal: usize,
    ) -> Result<ValueRef<'r>, SqlError> {
        let image = cells::take(&row[HEAD..]).and_then(|(image, _)| image);
        let value = cx.inputs.get(image.unwrap_or_default(), ordinal);
        value.map_err(|e| row_error(&e))
    }

    /// Adds a row of the partition to the state of an aggregate.
    #[inline]
    pub fn add(
        &self,
        cx: &PassCx<'_, '_>,
        info: &AggInfo<'_>,
        row: &[u8],
        acc: &mut Acc,
    ) -> Result<(), SqlError> {
        if self.stored {
            let value = self.stored_input(cx, row, self.args.start)?;
            return acc.add_stored(info.plan.func, value);
        }
        let values = self.values(cx, row)?;
        acc.add(&cx.eval, info, &values, false).map(drop)
    }

    /// The operands in a row of the partition.
    #[inline]
    pub fn values<'r>(&self, cx: &PassCx<'_, '_>, row: &'r [u8]) -> Result<Values<'r>, SqlError> {
        self.args.clone().map(|n| self.input(cx, row, n)).collect()
    }

    /// Whether the function depends on the frame.
    fn is_framed(&self) -> bool {
        use WindowFunc::{Aggregate, FirstValue, LastValue, NthValue};
        matches!(
            self.call.func,
            Aggregate(_) | FirstValue | LastValue | NthValue
        )
    }

    /// Whether the function needs to know which rows are peers.
    fn asks_peers(&self) -> bool {
        use WindowFunc::{CumeDist, DenseRank, PercentRank, Rank};
        let by_peers = |b: &FrameBound| matches!(b, FrameBound::Peers | FrameBound::Value { .. });
        let frame = &self.call.frame;
        match self.call.func {
            Rank | DenseRank | PercentRank | CumeDist => true,
            _ => self.is_framed() && (by_peers(&frame.start) || by_peers(&frame.end)),
        }
    }
}

/// The peers of the current row, and the number of peer groups so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Peers {
    pub start: u64,
    pub end: u64,
    pub groups: u64,
}

/// The [`Peers`] by a prefix of the order.
struct PeerMark {
    members: usize,
    at: Peers,
    cursor: Cursor,
}

impl PeerMark {
    fn move_to(&mut self, rt: &Runtime<'_>, rows: &Rows, row: u64) -> Result<(), SqlError> {
        if row < self.at.end {
            return Ok(());
        }
        self.at.start = row;
        self.at.end = row + 1;
        self.at.groups += 1;
        while self.at.end < rows.len() {
            let next = rows.get(rt, &mut self.cursor, self.at.end)?;
            let like = next
                .first_chunk::<HEAD>()
                .map_or(0, |b| u16::from_le_bytes(*b));
            if usize::from(like) < self.members {
                break;
            }
            self.at.end += 1;
            if self.at.end.is_multiple_of(4096) {
                rt.tick()?;
            }
        }
        Ok(())
    }
}

/// The state of a call in a partition.
struct CallState {
    frame: Frame,
    slide: Option<Slide>,
    cursor: Cursor,
    /// The index of its peers among the marks.
    peers: Option<usize>,
}

/// Computes a pass, partition by partition.
pub(super) struct Walk<'p> {
    calls: &'p [CallShape<'p>],
    states: Vec<CallState>,
    peers: Vec<PeerMark>,
    cursor: Cursor,
    result: Vec<u8>,
}

impl<'p> Walk<'p> {
    pub fn new(calls: &'p [CallShape<'p>]) -> Walk<'p> {
        let mut peers: Vec<PeerMark> = Vec::new();
        let mut states = Vec::new();
        for shape in calls {
            let members = shape.call.order;
            let mark = shape.asks_peers().then(|| {
                let known = peers.iter().position(|p| p.members == members);
                known.unwrap_or_else(|| {
                    peers.push(PeerMark {
                        members,
                        at: Peers::default(),
                        cursor: Cursor::default(),
                    });
                    peers.len() - 1
                })
            });
            states.push(CallState {
                frame: Frame::default(),
                slide: Slide::new(shape),
                cursor: Cursor::default(),
                peers: mark,
            });
        }
        Walk {
            calls,
            states,
            peers,
            cursor: Cursor::default(),
            result: Vec::new(),
        }
    }

    /// Passes each row of a partition to the consumer, with the image of its results. False: the
    /// consumer wants no more.
    pub fn partition(
        &mut self,
        cx: &PassCx<'_, '_>,
        rows: &Rows,
        sink: &mut dyn FnMut(&[u8], &[u8]) -> Result<bool, SqlError>,
    ) -> Result<bool, SqlError> {
        self.cursor.reset();
        for mark in &mut self.peers {
            mark.at = Peers::default();
            mark.cursor.reset();
        }
        for (state, shape) in self.states.iter_mut().zip(self.calls) {
            state.frame.reset();
            state.cursor.reset();
            if let Some(slide) = &mut state.slide {
                slide.reset(&shape.info());
            }
        }
        for row in 0..rows.len() {
            if row % 256 == 255 {
                cx.rt.tick()?;
            }
            for mark in &mut self.peers {
                mark.move_to(cx.rt, rows, row)?;
            }
            let mut values: SmallVec<[Val<'_>; 6]> = SmallVec::new();
            for (state, shape) in self.states.iter_mut().zip(self.calls) {
                let at = At {
                    row,
                    rows: rows.len(),
                    peers: state.peers.map_or(Peers::default(), |n| self.peers[n].at),
                };
                values.push(state.value(cx, shape, rows, at)?);
            }
            self.result.clear();
            tuple::encode_row(cx.result, &values, &mut self.result)?;
            drop(values);
            let record = &rows.get(cx.rt, &mut self.cursor, row)?[HEAD..];
            if !sink(record, &self.result)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl CallState {
    /// The result of a call for a row.
    fn value<'v>(
        &'v mut self,
        cx: &PassCx<'_, '_>,
        shape: &CallShape<'_>,
        rows: &'v Rows,
        at: At,
    ) -> Result<Val<'v>, SqlError> {
        let n = shape.number;
        let frame = match shape.is_framed() {
            true => self.frame.of(cx, shape, rows, at)?,
            false => (0, 0),
        };
        let (start, end) = frame;
        let place = match shape.call.func {
            WindowFunc::RowNumber => return Ok(Val::UInt(at.row + 1)),
            WindowFunc::Rank => return Ok(Val::UInt(at.peers.start + 1)),
            WindowFunc::DenseRank => return Ok(Val::UInt(at.peers.groups)),
            WindowFunc::PercentRank => {
                let others = at.rows - 1;
                return Ok(Val::Double(match others {
                    0 => 0.0,
                    _ => at.peers.start as f64 / others as f64,
                }));
            }
            WindowFunc::CumeDist => {
                return Ok(Val::Double(at.peers.end as f64 / at.rows as f64));
            }
            WindowFunc::Ntile => return Ok(Val::UInt(tile(n, at))),
            WindowFunc::Aggregate(AggFunc::CountStar) => {
                return Ok(Val::Int(end.saturating_sub(start) as i64));
            }
            WindowFunc::Aggregate(_) => {
                let Some(slide) = &mut self.slide else {
                    return Ok(Val::Null);
                };
                let value = slide.value(cx, shape, rows, frame)?;
                return Ok(Val::from_ref(value.as_ref()));
            }
            WindowFunc::Lead => at.row.checked_add(n).filter(|row| *row < at.rows),
            WindowFunc::Lag => at.row.checked_sub(n),
            WindowFunc::FirstValue => (start < end).then_some(start),
            WindowFunc::LastValue => (start < end).then(|| end - 1),
            WindowFunc::NthValue => (n.checked_sub(1))
                .and_then(|n| start.checked_add(n))
                .filter(|row| *row < end),
        };
        let (row, input) = match place {
            Some(row) => (row, shape.args.start),
            // The default value of LEAD and LAG is computed for the current row.
            None if shape.args.len() > 1 => (at.row, shape.args.start + 1),
            None => return Ok(Val::Null),
        };
        let image = rows.get(cx.rt, &mut self.cursor, row)?;
        shape.input(cx, image, input)
    }
}

/// NTILE: if the rows do not divide evenly, the first tiles have one row more.
fn tile(tiles: u64, at: At) -> u64 {
    let (size, larger) = (at.rows / tiles, at.rows % tiles);
    let in_larger = larger * (size + 1);
    match at.row.checked_sub(in_larger) {
        None => at.row / (size + 1) + 1,
        Some(behind) => larger + behind / size + 1,
    }
}
