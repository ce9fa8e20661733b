//! Evaluates a parsed XPath over the nodes of a document. Nodes are chosen as MySQL chooses them:
//! a set of nodes is true if it has one member, and a node's position counts among those that the
//! last step found below the same node.

use std::cmp::Ordering;

use nfold_plan::expr::{Coercibility, ExprType, TextOrigin};
use nfold_types::sql_type::NOT_FIXED_DECIMALS;
use nfold_types::{CollationId, ErrorCode, SqlError, Value};

use super::document::{Document, NodeKind};
use super::path::{Arith, Axis, Function, Nodes, Relation, Term};
use crate::expr::eval::arith::{division_by_zero, range_error_of};
use crate::expr::eval::{EvalCx, Val, convert};

/// The members that a set of nodes may have.
const MEMBERS_MAX: usize = 1 << 24;

/// The work of looking at one node.
const NODE_WORK: u64 = 4;

/// A node that was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundNode {
    pub node: usize,
    /// Its position, from 0.
    position: usize,
    /// In a predicate: the number of nodes that are tested.
    size: usize,
}

/// A value with its type.
struct Typed {
    value: Val<'static>,
    ty: ExprType,
}

pub(super) struct Evaluator<'e, 'a, 't> {
    pub cx: &'e EvalCx<'a>,
    pub document: &'e Document<'t>,
    pub collation: CollationId,
}

fn null(ty: ExprType) -> Typed {
    Typed {
        value: Val::Null,
        ty,
    }
}

fn int(value: i64) -> Typed {
    Typed {
        value: Val::Int(value),
        ty: ExprType::bigint(true),
    }
}

fn truth(value: Option<bool>) -> Typed {
    Typed {
        value: Val::from_bool(value),
        ty: ExprType::bigint(true),
    }
}

fn real(value: f64, decimals: u8) -> Typed {
    Typed {
        value: Val::Double(value),
        ty: ExprType::double_fixed(decimals, true),
    }
}

impl Typed {
    fn is_int(&self) -> bool {
        matches!(self.value, Val::Int(_) | Val::UInt(_))
    }

    /// The decimals that the value is shown with.
    fn decimals(&self) -> u8 {
        match self.value {
            Val::Int(_) | Val::UInt(_) => 0,
            Val::Double(_) => self.ty.decimals(),
            _ => NOT_FIXED_DECIMALS,
        }
    }
}

impl<'e> Evaluator<'e, '_, '_> {
    /// The text of a term's value; `None` for NULL.
    pub fn text(&self, term: &'e Term, context: &[FoundNode]) -> Result<Option<Vec<u8>>, SqlError> {
        let value = self.term(term, context)?;
        let text = convert::to_text(self.cx, value.value, &value.ty, self.collation);
        Ok(text.map(|t| t.into_owned()))
    }

    fn string(&self, text: Vec<u8>, origin: TextOrigin) -> Typed {
        let level = Coercibility::Coercible;
        let mut ty = ExprType::string(text.len() as u64, self.collation, level, true);
        ty.origin = origin;
        Typed {
            value: Val::string(text),
            ty,
        }
    }

    fn f64(&self, value: &Typed) -> Option<f64> {
        convert::to_f64(self.cx, &value.value, &value.ty)
    }

    /// Adds a node to a set.
    fn add(&self, set: &mut Vec<FoundNode>, node: usize, position: usize) -> Result<(), SqlError> {
        if set.len() == MEMBERS_MAX {
            let message = format!("XPATH error: more than {MEMBERS_MAX} nodes");
            return Err(SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, message));
        }
        set.push(FoundNode {
            node,
            position,
            size: 0,
        });
        Ok(())
    }

    /// The set of nodes that `nodes` selects. `context`: the node that a predicate is tested for.
    pub fn nodes(
        &self,
        nodes: &'e Nodes,
        context: &[FoundNode],
    ) -> Result<Vec<FoundNode>, SqlError> {
        let mut set = Vec::new();
        match nodes {
            Nodes::Root => self.add(&mut set, 0, 0)?,
            Nodes::Context => set.extend_from_slice(context),
            Nodes::Step { from, axis, name } => {
                let from = self.nodes(from, context)?;
                self.step(&from, *axis, name.as_deref(), &mut set)?;
            }
            Nodes::Where(from, test) => {
                let from = self.nodes(from, context)?;
                for found in self.tested(&from) {
                    if self.is_true(test, &[found])? == Some(true) {
                        let position = set.len();
                        self.add(&mut set, found.node, position)?;
                    }
                }
            }
            Nodes::At(from, position) => {
                let from = self.nodes(from, context)?;
                for found in self.tested(&from) {
                    let at = self.term(position, &[found])?;
                    let at = convert::to_integer(self.cx, &at.value, &at.ty);
                    if at == Some(found.position as i128 + 1) {
                        let position = set.len();
                        self.add(&mut set, found.node, position)?;
                    }
                }
            }
            Nodes::Union(a, b) => {
                let mut both = vec![false; self.document.nodes.len()];
                for side in [a, b] {
                    for found in self.nodes(side, context)? {
                        both[found.node] = true;
                    }
                }
                self.add_marked(&both, &mut set)?;
            }
        }
        Ok(set)
    }

    /// The nodes of a set as the context of a predicate.
    fn tested(&self, from: &[FoundNode]) -> impl Iterator<Item = FoundNode> {
        let size = from.len();
        from.iter().map(move |found| FoundNode { size, ..*found })
    }

    /// Adds marked nodes in the document's order.
    fn add_marked(&self, marks: &[bool], set: &mut Vec<FoundNode>) -> Result<(), SqlError> {
        self.cx.checkpoint(marks.len() as u64)?;
        for (node, _) in marks.iter().enumerate().filter(|(_, marked)| **marked) {
            let position = set.len();
            self.add(set, node, position)?;
        }
        Ok(())
    }

    fn step(
        &self,
        from: &[FoundNode],
        axis: Axis,
        name: Option<&[u8]>,
        set: &mut Vec<FoundNode>,
    ) -> Result<(), SqlError> {
        let document = self.document;
        let named = |node: usize| name.is_none_or(|name| document.bytes(node) == name);
        match axis {
            Axis::Parent => {
                let mut marks = vec![false; document.nodes.len()];
                for found in from.iter().filter(|f| f.node > 0) {
                    let parent = document.nodes[found.node].parent;
                    marks[parent] |= named(parent);
                }
                return self.add_marked(&marks, set);
            }
            Axis::Ancestor | Axis::AncestorOrSelf => {
                return self.ancestors(from, axis == Axis::AncestorOrSelf, &named, set);
            }
            _ => {}
        }
        for found in from {
            let mut position = 0;
            let itself = matches!(axis, Axis::SelfNode | Axis::DescendantOrSelf);
            if itself && named(found.node) {
                self.add(set, found.node, position)?;
                position += 1;
            }
            if axis == Axis::SelfNode {
                continue;
            }
            let kind = match axis {
                Axis::Attribute => NodeKind::Attribute,
                _ => NodeKind::Element,
            };
            let deep = matches!(axis, Axis::Descendant | Axis::DescendantOrSelf);
            let below = document.below(found.node);
            self.cx
                .checkpoint(NODE_WORK * (1 + below.size_hint().0) as u64)?;
            for node in below {
                let n = &document.nodes[node];
                if n.kind == kind && (deep || n.parent == found.node) && named(node) {
                    self.add(set, node, position)?;
                    position += 1;
                }
            }
        }
        Ok(())
    }

    /// The ancestors of nodes in the document's order; the first one has the last position.
    fn ancestors(
        &self,
        from: &[FoundNode],
        with_self: bool,
        named: &dyn Fn(usize) -> bool,
        set: &mut Vec<FoundNode>,
    ) -> Result<(), SqlError> {
        let nodes = &self.document.nodes;
        let mut marks = vec![false; nodes.len()];
        // As in MySQL, a node that is reached twice counts twice.
        let mut count = 0;
        for found in from {
            self.cx
                .checkpoint(NODE_WORK * nodes[found.node].level as u64)?;
            if with_self && named(found.node) {
                marks[found.node] = true;
                count += 1;
            }
            let mut at = nodes[found.node].parent;
            while nodes[at].parent != at {
                if named(at) {
                    marks[at] = true;
                    count += 1;
                }
                at = nodes[at].parent;
            }
        }
        for (node, _) in marks.iter().enumerate().filter(|(_, marked)| **marked) {
            count -= 1;
            self.add(set, node, count)?;
        }
        Ok(())
    }

    /// The texts directly within a node.
    fn texts(&self, node: usize) -> impl Iterator<Item = &'e [u8]> {
        let document = self.document;
        let inner = document.below(node).filter(move |n| {
            let n = &document.nodes[*n];
            n.kind == NodeKind::Text && n.parent == node
        });
        inner.map(|n| document.bytes(n))
    }

    /// The texts of a set of nodes in the document's order, with spaces between them.
    fn joined(&self, set: &[FoundNode]) -> Result<Vec<u8>, SqlError> {
        let nodes = &self.document.nodes;
        let mut active = vec![false; nodes.len()];
        set.iter().for_each(|found| active[found.node] = true);
        let mut out = Vec::new();
        self.cx.checkpoint(NODE_WORK * nodes.len() as u64)?;
        for (at, node) in nodes.iter().enumerate() {
            if node.kind == NodeKind::Text && active[node.parent] {
                if !out.is_empty() {
                    out.push(b' ');
                }
                self.cx.append(self.document.bytes(at), &mut out)?;
            }
        }
        Ok(out)
    }

    fn is_true(&self, term: &'e Term, context: &[FoundNode]) -> Result<Option<bool>, SqlError> {
        if let Term::Nodes(nodes) = term {
            return Ok(Some(self.nodes(nodes, context)?.len() == 1));
        }
        let value = self.term(term, context)?;
        Ok(convert::to_bool(self.cx, &value.value, &value.ty))
    }

    fn term(&self, term: &'e Term, context: &[FoundNode]) -> Result<Typed, SqlError> {
        self.cx.checkpoint(NODE_WORK)?;
        Ok(match term {
            Term::Nodes(nodes) => {
                let set = self.nodes(nodes, context)?;
                self.string(self.joined(&set)?, TextOrigin::Computed)
            }
            Term::Int(v) => int(*v),
            Term::Real(v, decimals) => real(*v, *decimals),
            Term::Text(text) => self.string(text.clone(), TextOrigin::Literal),
            Term::Variable(name) => self.variable(name),
            Term::Neg(inner) => self.negated(inner, context)?,
            Term::Arith(op, sides) => {
                let [a, b] = &**sides;
                let (a, b) = (self.term(a, context)?, self.term(b, context)?);
                self.arith(*op, &a, &b)?
            }
            Term::Compare(relation, sides) => {
                let [a, b] = &**sides;
                truth(self.compared(*relation, a, b, context)?)
            }
            Term::And(sides) => {
                let a = self.is_true(&sides[0], context)?;
                truth(match a {
                    Some(false) => a,
                    _ => match self.is_true(&sides[1], context)? {
                        Some(true) => a,
                        b => b,
                    },
                })
            }
            Term::Or(sides) => {
                let a = self.is_true(&sides[0], context)?;
                truth(match a {
                    Some(true) => a,
                    _ => match self.is_true(&sides[1], context)? {
                        Some(false) => a,
                        b => b,
                    },
                })
            }
            Term::Call(function, args) => self.call(*function, args, context)?,
        })
    }

    fn variable(&self, name: &str) -> Typed {
        match self.cx.env().user_var(name) {
            Value::Null => self.string_null(),
            Value::Int(v) => int(v),
            Value::UInt(v) => Typed {
                value: Val::UInt(v),
                ty: ExprType::ubigint(true),
            },
            Value::Double(v) => real(v, NOT_FIXED_DECIMALS),
            Value::Decimal(v) => Typed {
                value: Val::Decimal(v),
                ty: ExprType::decimal(65, v.scale().into(), true),
            },
            Value::Bytes(text) => self.string(text, TextOrigin::Computed),
            other => {
                let value = Val::from_ref(other.as_ref());
                let text = convert::to_bytes(self.cx, value, &ExprType::bigint(true));
                let text = text.unwrap_or_default().into_owned();
                self.string(text, TextOrigin::Computed)
            }
        }
    }

    fn string_null(&self) -> Typed {
        null(self.string(Vec::new(), TextOrigin::Computed).ty)
    }

    fn negated(&self, inner: &'e Term, context: &[FoundNode]) -> Result<Typed, SqlError> {
        let inner = self.term(inner, context)?;
        if let Val::Int(v) = inner.value {
            let text = format!("-({v})");
            return v
                .checked_neg()
                .map(int)
                .ok_or_else(|| range_error_of("BIGINT", &text));
        }
        let decimals = inner.decimals();
        Ok(match self.f64(&inner) {
            Some(v) => real(-v, decimals),
            None => null(ExprType::double(true)),
        })
    }

    fn arith(&self, op: Arith, a: &Typed, b: &Typed) -> Result<Typed, SqlError> {
        if a.value.is_null() || b.value.is_null() {
            return Ok(null(ExprType::bigint(true)));
        }
        let zero = || Ok(null(ExprType::bigint(true)));
        if let (Val::Int(x), Val::Int(y)) = (&a.value, &b.value) {
            let (x, y) = (*x, *y);
            let (found, sign) = match op {
                Arith::Add => (x.checked_add(y), "+"),
                Arith::Sub => (x.checked_sub(y), "-"),
                Arith::Mul => (x.checked_mul(y), "*"),
                Arith::Div | Arith::Mod if y == 0 => {
                    division_by_zero(self.cx)?;
                    return zero();
                }
                Arith::Div => (x.checked_div(y), "DIV"),
                Arith::Mod => (Some(x.wrapping_rem(y)), "%"),
            };
            let error = || range_error_of("BIGINT", &format!("({x} {sign} {y})"));
            return found.map(int).ok_or_else(error);
        }
        if op == Arith::Div {
            let side = |v: &Typed| convert::to_decimal(self.cx, &v.value, &v.ty);
            let (Some(x), Some(y)) = (side(a), side(b)) else {
                return zero();
            };
            let error = || range_error_of("BIGINT", &format!("({x} DIV {y})"));
            return match x.int_div(&y) {
                None => {
                    division_by_zero(self.cx)?;
                    zero()
                }
                Some(found) => found.and_then(|d| d.to_i64()).map(int).ok_or_else(error),
            };
        }
        let (Some(x), Some(y)) = (self.f64(a), self.f64(b)) else {
            return zero();
        };
        let (dx, dy) = (a.decimals(), b.decimals());
        let (value, decimals, sign) = match op {
            Arith::Add => (x + y, dx.max(dy), "+"),
            Arith::Sub => (x - y, dx.max(dy), "-"),
            Arith::Mul => (x * y, dx.saturating_add(dy), "*"),
            Arith::Div | Arith::Mod if y == 0.0 => {
                division_by_zero(self.cx)?;
                return zero();
            }
            Arith::Div | Arith::Mod => (x % y, dx.max(dy), "%"),
        };
        match value.is_finite() {
            true => Ok(real(value, decimals)),
            false => Err(range_error_of("DOUBLE", &format!("({x} {sign} {y})"))),
        }
    }

    /// Compares two values, or a value with each text of a set of nodes.
    fn compared(
        &self,
        relation: Relation,
        a: &'e Term,
        b: &'e Term,
        context: &[FoundNode],
    ) -> Result<Option<bool>, SqlError> {
        let (nodes, other, turned) = match (a, b) {
            (Term::Nodes(nodes), other) => (nodes, other, false),
            (other, Term::Nodes(nodes)) => (nodes, other, true),
            _ => {
                let (a, b) = (self.term(a, context)?, self.term(b, context)?);
                return Ok(self.order(&a, &b).map(|o| holds(relation, o)));
            }
        };
        let other = self.term(other, context)?;
        for found in self.nodes(nodes, context)? {
            for text in self.texts(found.node) {
                self.cx.checkpoint(NODE_WORK + text.len() as u64)?;
                let text = self.string(text.to_vec(), TextOrigin::Computed);
                let order = self.order(&text, &other);
                let order = order.map(|o| if turned { o.reverse() } else { o });
                if order.is_some_and(|o| holds(relation, o)) {
                    return Ok(Some(true));
                }
            }
        }
        Ok(Some(false))
    }

    fn order(&self, a: &Typed, b: &Typed) -> Option<Ordering> {
        match (&a.value, &b.value) {
            (Val::Null, _) | (_, Val::Null) => None,
            (Val::Bytes(x), Val::Bytes(y)) => Some(self.collation.known().compare(x, y)),
            (Val::Int(x), Val::Int(y)) => Some(x.cmp(y)),
            _ if a.is_int() && b.is_int() => {
                let side = |v: &Typed| convert::to_integer(self.cx, &v.value, &v.ty);
                Some(side(a)?.cmp(&side(b)?))
            }
            _ => self.f64(a)?.partial_cmp(&self.f64(b)?),
        }
    }

    fn call(
        &self,
        function: Function,
        args: &'e [Term],
        context: &[FoundNode],
    ) -> Result<Typed, SqlError> {
        let set = |n: usize| match args.get(n) {
            Some(Term::Nodes(nodes)) => self.nodes(nodes, context),
            _ => Ok(Vec::new()),
        };
        let set_of = self.collation.known().charset;
        Ok(match function {
            Function::True => int(1),
            Function::False => int(0),
            Function::Boolean => truth(self.is_true(&args[0], context)?),
            Function::Not => truth(self.is_true(&args[0], context)?.map(|v| !v)),
            Function::Count => {
                let set = set(0)?;
                int(match set.as_slice() {
                    // As in MySQL, the context of a predicate counts all that are tested.
                    [only] if only.size > 0 => only.size,
                    set => set.len(),
                } as i64)
            }
            Function::Last => int(context.first().map_or(0, |found| found.size) as i64),
            Function::Position => {
                let position = context.first().map_or(0, |found| found.position + 1);
                int(position as i64)
            }
            Function::Sum => {
                let mut sum = 0.0;
                for found in set(0)? {
                    for text in self.texts(found.node) {
                        self.cx.checkpoint(NODE_WORK + text.len() as u64)?;
                        sum += nfold_types::convert::number::parse_double(text).value;
                    }
                }
                real(sum, NOT_FIXED_DECIMALS)
            }
            Function::Number => {
                let value = self.term(&args[0], context)?;
                match self.f64(&value) {
                    Some(v) => real(v, NOT_FIXED_DECIMALS),
                    None => null(ExprType::double(true)),
                }
            }
            Function::Round | Function::Floor | Function::Ceiling => {
                let value = self.term(&args[0], context)?;
                if value.is_int() {
                    return Ok(value);
                }
                let Some(v) = self.f64(&value) else {
                    return Ok(null(ExprType::double(true)));
                };
                let whole = match function {
                    Function::Round => v.round_ties_even(),
                    Function::Floor => v.floor(),
                    _ => v.ceil(),
                };
                real(whole, 0)
            }
            Function::Concat => {
                let Some(mut text) = self.text(&args[0], context)? else {
                    return Ok(self.string_null());
                };
                let Some(more) = self.text(&args[1], context)? else {
                    return Ok(self.string_null());
                };
                self.cx.append(&more, &mut text)?;
                if text.len() > self.cx.env().max_allowed_packet() {
                    let max = self.cx.env().max_allowed_packet();
                    let code = ErrorCode::ER_WARN_ALLOWED_PACKET_OVERFLOWED;
                    self.cx.warn(code, &[&"concat", &max]);
                    return Ok(self.string_null());
                }
                self.string(text, TextOrigin::Computed)
            }
            Function::Contains => {
                let text = self.text(&args[0], context)?;
                let part = self.text(&args[1], context)?;
                let (Some(text), Some(part)) = (text, part) else {
                    return Ok(truth(None));
                };
                let mut goes_on = |work| self.cx.goes_on(work);
                let collation = self.collation.known();
                let found = collation.position_stoppable(&text, &part, 0, &mut goes_on);
                self.cx.checkpoint(0)?;
                truth(Some(found.is_some()))
            }
            Function::StringLength => match self.text(&args[0], context)? {
                Some(text) => int(set_of.char_len(&text) as i64),
                None => null(ExprType::bigint(true)),
            },
            Function::Substring => {
                let Some(text) = self.text(&args[0], context)? else {
                    return Ok(self.string_null());
                };
                let mut ends = [0, i64::MAX.into()];
                for (end, arg) in ends.iter_mut().zip(&args[1..]) {
                    let value = self.term(arg, context)?;
                    let Some(v) = convert::to_integer(self.cx, &value.value, &value.ty) else {
                        return Ok(self.string_null());
                    };
                    *end = v;
                }
                self.string(substring(set_of, &text, ends), TextOrigin::Computed)
            }
        })
    }
}

/// As SUBSTRING: a negative start counts from the end.
fn substring(set: &nfold_types::Charset, text: &[u8], [start, len]: [i128; 2]) -> Vec<u8> {
    let skip = match start {
        ..0 => set.char_len(text) as i128 + start,
        0 => -1,
        _ => start - 1,
    };
    let (Ok(skip), Ok(len)) = (usize::try_from(skip), usize::try_from(len)) else {
        return Vec::new();
    };
    let rest = &text[set.char_prefix_len(text, skip)..];
    set.char_prefix(rest, len).to_vec()
}

fn holds(relation: Relation, order: Ordering) -> bool {
    match relation {
        Relation::Equal => order.is_eq(),
        Relation::NotEqual => order.is_ne(),
        Relation::Less => order.is_lt(),
        Relation::LessOrEqual => order.is_le(),
        Relation::Greater => order.is_gt(),
        Relation::GreaterOrEqual => order.is_ge(),
    }
}
