//! The state of one aggregate function over one group.

mod combine;
mod ordered_texts;

use std::cmp::Ordering;

use nfold_json::Json;
use nfold_plan::collate;
use nfold_plan::expr::{BitOp, Class, CmpKind, ExprType};
use nfold_plan::query::{AggFunc, Aggregate};
use nfold_types::row::{OrderedField, RowLayout};
use nfold_types::{Decimal, ErrorCode, SqlError, TypeKind, Value, ValueRef};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::expr::eval::tuple::KeyMaker;
use crate::expr::eval::{EvalCx, Val, bits, compare, convert, json};
use crate::expr::kernels::PartialSum;
use ordered_texts::OrderedTexts;

/// The memory of a key in a set of distinct values, besides its bytes.
const KEY_BYTES: usize = 48;

/// The evaluated arguments for one row.
pub(crate) type Values<'a> = SmallVec<[Val<'a>; 6]>;

/// The state of one aggregate over one group.
pub(crate) struct Acc {
    state: State,
    seen: Option<FxHashSet<Vec<u8>>>,
    /// The memory that it holds besides the struct itself, in bytes.
    pub bytes: usize,
    /// The part of `bytes` that distinct values take.
    seen_bytes: usize,
    /// The number of deferred rows, which gives their order.
    deferred: u64,
}

enum State {
    Count(u64),
    SumInt {
        sum: i128,
        count: u64,
    },
    SumDecimal {
        sum: Decimal,
        count: u64,
    },
    SumDouble {
        sum: f64,
        count: u64,
    },
    Extreme(Option<Value>),
    Bits(u64),
    /// For binary strings; `None` before the first one.
    BitText(Option<Vec<u8>>),
    /// The count, the mean, and the sum of squared differences (Welford's algorithm).
    Spread {
        n: u64,
        mean: f64,
        m2: f64,
    },
    Concat {
        text: Vec<u8>,
        /// The number of rows in the text, up to the one that was truncated.
        rows: u64,
        cut: bool,
    },
    ConcatOrdered(OrderedTexts),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// The layout of an aggregate's arguments, and the keys of its distinct values and of
/// GROUP_CONCAT's order. Built once per plan.
pub(crate) struct AggShape {
    distinct: KeyMaker,
    order: KeyMaker,
    /// The number of arguments and of GROUP_CONCAT's order expressions.
    pub width: usize,
    /// The layout of these values in deferred rows.
    pub layout: RowLayout,
}

impl AggShape {
    pub fn new(plan: &Aggregate) -> AggShape {
        AggShape {
            distinct: KeyMaker::new(plan.args.iter().map(|a| (&a.ty, false))),
            order: KeyMaker::new(plan.order.iter().map(|o| (&o.expr.ty, o.desc))),
            width: plan.args.len() + plan.order.len(),
            layout: crate::expr::eval::tuple::layout_of(&input_types(plan).collect::<Vec<_>>()),
        }
    }
}

/// The shared data of all groups' states of one aggregate: its plan and its shape.
#[derive(Clone, Copy)]
pub(crate) struct AggInfo<'p> {
    pub plan: &'p Aggregate,
    pub shape: &'p AggShape,
}

/// The types of the values that [`values`] returns for one row.
pub(crate) fn input_types(plan: &Aggregate) -> impl Iterator<Item = ExprType> {
    let inputs = plan.args.iter().chain(plan.order.iter().map(|o| &o.expr));
    inputs.map(|e| match plan.func {
        AggFunc::Min | AggFunc::Max if e.ty.col.is_enum_or_set() => e.ty.kept(),
        _ => e.ty.clone(),
    })
}

/// Evaluates an aggregate's arguments for one row.
pub(crate) fn values<'a>(
    cx: &EvalCx<'a>,
    plan: &'a Aggregate,
    out: &mut Values<'a>,
) -> Result<(), SqlError> {
    for e in plan.args.iter().chain(plan.order.iter().map(|o| &o.expr)) {
        let v = match plan.func {
            AggFunc::Min | AggFunc::Max => crate::expr::eval::tuple::own_text(cx, e)?,
            _ => cx.val(e)?,
        };
        out.push(v);
    }
    Ok(())
}

impl Acc {
    pub fn new(plan: &Aggregate) -> Acc {
        let state = match plan.func {
            AggFunc::Count | AggFunc::CountStar => State::Count(0),
            AggFunc::Sum | AggFunc::Avg => match (plan.ty.class(), plan.args[0].ty.class()) {
                (Class::Decimal, Class::Int) => State::SumInt { sum: 0, count: 0 },
                (Class::Decimal, _) => State::SumDecimal {
                    sum: Decimal::from(0i64),
                    count: 0,
                },
                _ => State::SumDouble { sum: 0.0, count: 0 },
            },
            AggFunc::Min | AggFunc::Max | AggFunc::Any => State::Extreme(None),
            AggFunc::BitAnd | AggFunc::BitOr | AggFunc::BitXor
                if plan.ty.class() == Class::String =>
            {
                State::BitText(None)
            }
            AggFunc::BitAnd => State::Bits(u64::MAX),
            AggFunc::BitOr | AggFunc::BitXor => State::Bits(0),
            AggFunc::StdPop | AggFunc::StdSamp | AggFunc::VarPop | AggFunc::VarSamp => {
                State::Spread {
                    n: 0,
                    mean: 0.0,
                    m2: 0.0,
                }
            }
            AggFunc::GroupConcat if plan.order.is_empty() => State::Concat {
                text: Vec::new(),
                rows: 0,
                cut: false,
            },
            AggFunc::GroupConcat => State::ConcatOrdered(OrderedTexts::default()),
            AggFunc::JsonArray => State::Array(Vec::new()),
            AggFunc::JsonObject => State::Object(Vec::new()),
        };
        Acc {
            state,
            seen: plan.distinct.then(FxHashSet::default),
            bytes: 0,
            seen_bytes: 0,
            deferred: 0,
        }
    }

    /// Adds `n` rows to a `COUNT(*)`.
    pub fn count_rows(&mut self, n: u64) {
        if let State::Count(c) = &mut self.state {
            *c += n;
        }
    }

    /// Whether [`Acc::add_stored`] can add an argument of this type: to a count, or to a sum or
    /// extreme of numbers or dates, without DISTINCT.
    pub fn takes_stored(&self, ty: Option<&ExprType>) -> bool {
        if self.seen.is_some() {
            return false;
        }
        // A TIMESTAMP is compared in the session's local time; a TIME is compared unchanged.
        let class = ty
            .filter(|ty| !matches!(ty.col.kind, TypeKind::Timestamp(_) | TypeKind::Bit(_)))
            .map(ExprType::class);
        match self.state {
            State::Count(_) => true,
            State::SumInt { .. } => class == Some(Class::Int),
            State::SumDecimal { .. } => class == Some(Class::Decimal),
            State::SumDouble { .. } => class == Some(Class::Double),
            State::Extreme(_) => matches!(
                class,
                Some(Class::Int | Class::Decimal | Class::Double | Class::Date | Class::DateTime)
            ),
            _ => false,
        }
    }

    /// Adds a value in its stored form. A count ignores the value.
    #[inline]
    pub fn add_stored(&mut self, func: AggFunc, value: ValueRef<'_>) -> Result<(), SqlError> {
        if value.is_null() && func != AggFunc::Any {
            return Ok(());
        }
        match (&mut self.state, value) {
            (State::Count(c), _) => *c += 1,
            (State::SumInt { sum, count }, ValueRef::Int(v)) => {
                *sum += i128::from(v);
                *count += 1;
            }
            (State::SumInt { sum, count }, ValueRef::UInt(v)) => {
                *sum += i128::from(v);
                *count += 1;
            }
            (State::SumDecimal { sum, count }, ValueRef::Decimal(v)) => {
                *sum = sum.add(&v).ok_or_else(sum_overflow)?;
                *count += 1;
            }
            (State::SumDouble { sum, count }, ValueRef::Double(v)) => {
                *sum += v;
                *count += 1;
            }
            (State::SumDouble { sum, count }, ValueRef::Float(v)) => {
                *sum += f64::from(v);
                *count += 1;
            }
            (State::Extreme(best), v) => stored_extreme(func, best, v),
            _ => debug_assert!(false, "`takes_stored` excludes them"),
        }
        Ok(())
    }

    /// Adds `field` of many rows at once. Returns `None` without adding anything if the result
    /// could differ from that of [`add_stored`](Self::add_stored) row by row. For MIN and MAX,
    /// returns the row with the extreme value, if any, which the caller has to add.
    #[inline]
    pub fn add_ordered<'i>(
        &mut self,
        func: AggFunc,
        field: &OrderedField,
        images: impl Iterator<Item = &'i [u8]>,
    ) -> Option<Option<&'i [u8]>> {
        let mut keys = images.filter_map(|image| field.key(image).map(|key| (key, image)));
        match &mut self.state {
            State::Count(c) => *c += keys.count() as u64,
            State::SumInt { sum, count } if field.is_integer() => {
                for (key, _) in keys {
                    *sum += field.number(key);
                    *count += 1;
                }
            }
            State::Extreme(_) if matches!(func, AggFunc::Min | AggFunc::Max) => {
                let Some(mut best) = keys.next() else {
                    return Some(None);
                };
                for next in keys {
                    let better = match func {
                        AggFunc::Min => next.0 < best.0,
                        _ => next.0 > best.0,
                    };
                    if better {
                        best = next;
                    }
                }
                return Some(Some(best.1));
            }
            _ => return None,
        }
        Some(None)
    }

    /// Whether it is a sum or average of exact numbers, to which [`add_sum`](Self::add_sum) adds.
    pub fn is_exact_sum(&self) -> bool {
        self.seen.is_none() && matches!(self.state, State::SumInt { .. } | State::SumDecimal { .. })
    }

    /// Adds the sum of several numbers with `scale` digits behind the point.
    ///
    /// # Errors
    /// 1690: the result has more digits than a DECIMAL.
    pub fn add_sum(&mut self, part: PartialSum, scale: u8) -> Result<(), SqlError> {
        match &mut self.state {
            State::SumInt { sum, count } => {
                *sum += part.unscaled;
                *count += part.rows;
            }
            State::SumDecimal { sum, count } => {
                let magnitude = part.unscaled.unsigned_abs().into();
                let number = Decimal::from_parts(part.unscaled < 0, magnitude, scale);
                let total = number.and_then(|number| sum.add(&number));
                *sum = total.ok_or_else(sum_overflow)?;
                *count += part.rows;
            }
            _ => debug_assert!(false, "callers check `is_exact_sum` first"),
        }
        Ok(())
    }

    /// Adds one row. If memory is `full`, a value that would have to be stored is deferred: its
    /// sort key is returned. Values that count only once (DISTINCT) have equal keys.
    pub fn add(
        &mut self,
        cx: &EvalCx<'_>,
        info: &AggInfo<'_>,
        values: &[Val<'_>],
        full: bool,
    ) -> Result<Option<Vec<u8>>, SqlError> {
        let plan = info.plan;
        let args = &values[..plan.args.len()];
        let skips_null = !matches!(
            plan.func,
            AggFunc::CountStar | AggFunc::Any | AggFunc::JsonArray | AggFunc::JsonObject
        );
        if skips_null && args.iter().any(Val::is_null) {
            return Ok(None);
        }
        // After the first deferred row all later ones are deferred, so that no value counts twice
        // and texts keep their order.
        let full = full || self.deferred > 0;
        if let Some(seen) = &mut self.seen
            && plan.func != AggFunc::CountStar
        {
            let mut key = Vec::new();
            info.shape.distinct.push_all(args, &mut key)?;
            if seen.contains(&key) {
                return Ok(None);
            }
            if full {
                self.deferred += 1;
                return Ok(Some(key));
            }
            self.seen_bytes += key.len() + KEY_BYTES;
            self.bytes += key.len() + KEY_BYTES;
            seen.insert(key);
        } else if full
            && matches!(
                plan.func,
                AggFunc::GroupConcat | AggFunc::JsonArray | AggFunc::JsonObject
            )
        {
            self.deferred += 1;
            return Ok(Some(self.deferred.to_be_bytes().to_vec()));
        }
        self.take(cx, info, values).map(|()| None)
    }

    /// Adds one row whose value counts.
    pub fn take(
        &mut self,
        cx: &EvalCx<'_>,
        info: &AggInfo<'_>,
        values: &[Val<'_>],
    ) -> Result<(), SqlError> {
        let plan = info.plan;
        let args = &values[..plan.args.len()];
        match &mut self.state {
            State::Count(c) => *c += 1,
            State::SumInt { sum, count } => {
                *sum += convert::to_integer(cx, &args[0], &plan.args[0].ty).unwrap_or(0);
                *count += 1;
            }
            State::SumDecimal { sum, count } => {
                let v = convert::to_decimal(cx, &args[0], &plan.args[0].ty)
                    .unwrap_or(Decimal::from(0i64));
                *sum = sum.add(&v).ok_or_else(sum_overflow)?;
                *count += 1;
            }
            State::SumDouble { sum, count } => {
                *sum += convert::to_f64(cx, &args[0], &plan.args[0].ty).unwrap_or(0.0);
                *count += 1;
            }
            State::Extreme(best) => self.bytes += extreme(cx, plan, best, &args[0]),
            State::Bits(bits) => {
                cx.check_range(&plan.args[0], &args[0])?;
                let v = convert::to_integer(cx, &args[0], &plan.args[0].ty).unwrap_or(0) as u64;
                match plan.func {
                    AggFunc::BitAnd => *bits &= v,
                    AggFunc::BitOr => *bits |= v,
                    _ => *bits ^= v,
                }
            }
            State::BitText(bits) => {
                let text = convert::to_bytes(cx, args[0].clone(), &plan.args[0].ty);
                let text = text.unwrap_or_default();
                *bits = Some(match bits {
                    None => text.into_owned(),
                    Some(bits) => bits::joined(bit_op(plan.func), bits, &text)?,
                });
            }
            State::Spread { n, mean, m2 } => {
                let v = convert::to_f64(cx, &args[0], &plan.args[0].ty).unwrap_or(0.0);
                *n += 1;
                let delta = v - *mean;
                *mean += delta / *n as f64;
                *m2 += delta * (v - *mean);
            }
            State::Concat { cut: true, .. } => {}
            State::Concat { text, rows, cut } => {
                if *rows > 0 {
                    text.extend_from_slice(&plan.separator);
                }
                *rows += 1;
                concat_args(cx, plan, args, text);
                let max = cx.env().group_concat_max_len();
                if text.len() > max {
                    *cut = true;
                    let keep = plan
                        .ty
                        .collation()
                        .known()
                        .well_formed_prefix(&text[..max])
                        .len();
                    text.truncate(keep);
                }
                self.bytes = self.seen_bytes + text.len();
            }
            State::Array(elements) => {
                self.bytes += document_bytes(args);
                elements.push(json::of_expr(cx, &plan.args[0], &args[0])?);
            }
            State::Object(members) => {
                if args[0].is_null() {
                    let code = ErrorCode::ER_JSON_DOCUMENT_NULL_KEY;
                    return Err(SqlError::new(code, &[]));
                }
                self.bytes += document_bytes(args);
                let name = json::utf8(cx, &args[0], &plan.args[0].ty);
                members.push((name, json::of_expr(cx, &plan.args[1], &args[1])?));
            }
            State::ConcatOrdered(texts) => {
                let order = &values[plan.args.len()..];
                texts.push_row(
                    |key| info.shape.order.push_all(order, key),
                    |text| concat_args(cx, plan, args, text),
                )?;
                let max = cx.env().group_concat_max_len();
                if texts.bytes() > max.saturating_mul(4).saturating_add(4096) {
                    texts.forget_cut_off(cx, plan.separator.len(), max)?;
                }
                self.bytes = self.seen_bytes + texts.bytes();
            }
        }
        Ok(())
    }

    /// Computes the result, and consumes the state.
    pub fn finish<'a>(&mut self, cx: &EvalCx<'a>, plan: &Aggregate) -> Result<Val<'a>, SqlError> {
        let decimal = |sum: Decimal, count: u64| -> Result<Val<'a>, SqlError> {
            if plan.func == AggFunc::Sum {
                return Ok(Val::Decimal(sum));
            }
            let quotient = sum
                .div(&Decimal::from(count), cx.env().div_precision_increment())
                .flatten();
            quotient.map(Val::Decimal).ok_or_else(sum_overflow)
        };
        let state = std::mem::replace(&mut self.state, State::Count(0));
        Ok(match state {
            State::Count(c) => Val::Int(c as i64),
            State::SumInt { count: 0, .. }
            | State::SumDecimal { count: 0, .. }
            | State::SumDouble { count: 0, .. } => Val::Null,
            State::SumInt { sum, count } => decimal(convert::int_decimal(sum), count)?,
            State::SumDecimal { sum, count } => decimal(sum, count)?,
            // As in MySQL, a sum that exceeds DOUBLE is 0 here.
            State::SumDouble { sum, .. } if !sum.is_finite() => Val::Double(0.0),
            State::SumDouble { sum, count } => Val::Double(if plan.func == AggFunc::Sum {
                sum
            } else {
                sum / count as f64
            }),
            State::Extreme(v) => owned(v.unwrap_or(Value::Null)),
            State::Bits(b) => Val::UInt(b),
            State::BitText(Some(text)) => Val::string(text),
            // Without input, BIT_AND and its like return the longest string of neutral bits.
            State::BitText(None) => {
                let byte = match plan.func {
                    AggFunc::BitAnd => u8::MAX,
                    _ => 0,
                };
                Val::string(vec![byte; plan.ty.max_length() as usize])
            }
            State::Spread { n, m2, .. } => {
                let sample = matches!(plan.func, AggFunc::StdSamp | AggFunc::VarSamp);
                let divisor = if sample { n.saturating_sub(1) } else { n };
                if divisor == 0 {
                    return Ok(Val::Null);
                }
                let variance = m2 / divisor as f64;
                if !variance.is_finite() {
                    return Err(spread_overflow(cx, plan));
                }
                let root = matches!(plan.func, AggFunc::StdPop | AggFunc::StdSamp);
                Val::Double(if root { variance.sqrt() } else { variance })
            }
            State::Concat { rows: 0, .. } => Val::Null,
            State::Concat { text, rows, cut } => {
                count_concatenated(cx, plan, rows, cut);
                Val::string(text)
            }
            State::Array(elements) if elements.is_empty() => Val::Null,
            State::Object(members) if members.is_empty() => Val::Null,
            State::Array(elements) => document(cx, Json::Array(elements))?,
            State::Object(members) => document(cx, Json::object(members))?,
            State::ConcatOrdered(mut texts) => {
                if texts.is_empty() {
                    return Ok(Val::Null);
                }
                texts.sort(cx)?;
                let max = cx.env().group_concat_max_len();
                let mut text = Vec::new();
                let mut used = 0;
                let mut cut = false;
                for (n, piece) in texts.texts().enumerate() {
                    used += 1;
                    cx.checkpoint(20 + piece.len() as u64)?;
                    if n > 0 {
                        text.extend_from_slice(&plan.separator);
                    }
                    text.extend_from_slice(piece);
                    if text.len() > max {
                        cut = true;
                        let keep = plan
                            .ty
                            .collation()
                            .known()
                            .well_formed_prefix(&text[..max])
                            .len();
                        text.truncate(keep);
                        break;
                    }
                }
                count_concatenated(cx, plan, used, cut);
                Val::string(text)
            }
        })
    }
}

/// Counts the rows that GROUP_CONCAT has put into the texts of all groups. Warning 1260 shows this
/// number if a text was truncated.
fn count_concatenated(cx: &EvalCx<'_>, plan: &Aggregate, rows: u64, cut: bool) {
    let mut counts = cx.st.lists.concatenated.borrow_mut();
    let count = counts.entry(std::ptr::from_ref(plan) as usize).or_default();
    *count += rows;
    if cut {
        cx.warn(ErrorCode::ER_CUT_VALUE_GROUP_CONCAT, &[&*count]);
    }
}

/// The approximate memory of values as parts of a document.
fn document_bytes(values: &[Val<'_>]) -> usize {
    let bytes = |v: &Val<'_>| match v {
        Val::Bytes(b) => 64 + 2 * b.len(),
        _ => 64,
    };
    values.iter().map(bytes).sum()
}

fn document<'a>(cx: &EvalCx<'a>, value: Json) -> Result<Val<'a>, SqlError> {
    Ok(Val::string(json::encoded(cx, &value.check_depth()?)?))
}

#[cold]
fn sum_overflow() -> SqlError {
    SqlError::new(ErrorCode::ER_DATA_OUT_OF_RANGE, &[&"DECIMAL", &"sum"])
}

/// Replaces `best` by the value `v` of a column if that is more extreme.
#[inline]
fn stored_extreme(func: AggFunc, best: &mut Option<Value>, v: ValueRef<'_>) {
    use ValueRef::{Date, DateTime, Decimal, Double, Float, Int, UInt};
    let order = match (best.as_ref().map(Value::as_ref), v) {
        (None, _) => None,
        (Some(_), _) if func == AggFunc::Any => return,
        (Some(Int(a)), Int(b)) => Some(b.cmp(&a)),
        (Some(UInt(a)), UInt(b)) => Some(b.cmp(&a)),
        (Some(Decimal(a)), Decimal(b)) => Some(b.cmp(&a)),
        (Some(Date(a)), Date(b)) => Some(b.cmp(&a)),
        (Some(DateTime(a)), DateTime(b)) => Some(b.cmp(&a)),
        (Some(Double(a)), Double(b)) => b.partial_cmp(&a),
        (Some(Float(a)), Float(b)) => b.partial_cmp(&a),
        (Some(_), _) => {
            debug_assert!(false, "values of one column are of one kind");
            return;
        }
    };
    let wanted = match func {
        AggFunc::Min => Ordering::Less,
        _ => Ordering::Greater,
    };
    if best.is_none() || order == Some(wanted) {
        *best = Some(v.to_owned());
    }
}

/// Converts an owned value for evaluation.
pub(crate) fn owned<'a>(v: Value) -> Val<'a> {
    match v {
        Value::Bytes(b) => Val::string(b),
        Value::Null => Val::Null,
        Value::Int(v) => Val::Int(v),
        Value::UInt(v) => Val::UInt(v),
        Value::Float(v) => Val::Float(v),
        Value::Double(v) => Val::Double(v),
        Value::Decimal(v) => Val::Decimal(v),
        Value::Date(v) => Val::Date(v),
        Value::DateTime(v) => Val::DateTime(v),
        Value::Timestamp(_) => Val::Null,
        Value::Time(v) => Val::Time(v),
    }
}

fn concat_args(cx: &EvalCx<'_>, plan: &Aggregate, args: &[Val<'_>], out: &mut Vec<u8>) {
    for (v, e) in args.iter().zip(&plan.args) {
        if let Some(text) = convert::to_text(cx, v.clone(), &e.ty, plan.ty.collation()) {
            out.extend_from_slice(&text);
        }
    }
}

/// The comparison of two values of the same type.
pub(crate) fn self_kind(cx: &EvalCx<'_>, ty: &ExprType) -> CmpKind {
    collate::comparison(
        ty,
        ty,
        [nfold_plan::collate::Operand::Other; 2],
        cx.env().collation(),
        "max",
    )
    .unwrap_or(CmpKind::String(ty.collation()))
}

fn bit_op(func: AggFunc) -> BitOp {
    match func {
        AggFunc::BitAnd => BitOp::And,
        AggFunc::BitOr => BitOp::Or,
        _ => BitOp::Xor,
    }
}

/// Replaces `best` by `v` if that is more extreme. Returns how many bytes of memory it grew by.
fn extreme(cx: &EvalCx<'_>, plan: &Aggregate, best: &mut Option<Value>, v: &Val<'_>) -> usize {
    let ty = &plan.args[0].ty;
    let better = match (&*best, plan.func) {
        (None, _) => true,
        (Some(_), AggFunc::Any) => false,
        (Some(b), func) => {
            let wanted = if func == AggFunc::Min {
                Ordering::Less
            } else {
                Ordering::Greater
            };
            let b = Val::from_ref(b.as_ref());
            compare::order(cx, self_kind(cx, ty), (v, &plan.ty), (&b, &plan.ty)) == Some(wanted)
        }
    };
    if !better {
        return 0;
    }
    let bytes = match v {
        Val::Bytes(b) => b.len(),
        _ => 0,
    };
    match (best, v) {
        // Reuses the memory of the previous text.
        (Some(Value::Bytes(best)), Val::Bytes(b)) => {
            best.clear();
            best.extend_from_slice(b);
        }
        (best, v) => *best = Some(v.to_value()),
    }
    bytes
}

/// Error 1690 for a variance that exceeds DOUBLE.
fn spread_overflow(cx: &EvalCx<'_>, plan: &Aggregate) -> SqlError {
    let name = crate::expr::print::aggregate_name(plan.func).unwrap_or_default();
    let call = cx.describe_call(name, &plan.args);
    SqlError::new(ErrorCode::ER_DATA_OUT_OF_RANGE, &[&"DOUBLE", &call])
}
