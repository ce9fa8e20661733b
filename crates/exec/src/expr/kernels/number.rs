//! Exact arithmetic over columns of one table, in 128-bit integers.

use nfold_plan::expr::{ArithOp, Class, Expr, ExprKind};
use nfold_types::Decimal;

use super::images::Images;
use super::threshold::{KeyField, constant, is_exact_number};
use crate::expr::eval::{EvalCx, convert};

/// Numbers with more decimals than a DECIMAL may have are rounded, which only the evaluator does.
const MAX_SCALE: u8 = 30;

/// A DECIMAL expression of sums, differences and products of columns and constants, compiled for
/// one execution. Its value is an unscaled integer with [`scale`](Self::scale) decimals.
#[derive(Debug)]
pub(crate) struct NumberKernel {
    root: Node,
    scale: u8,
}

#[derive(Debug)]
enum Node {
    Column(KeyField),
    Constant(i128),
    Negative(Box<Node>),
    /// A value converted to more decimals: multiplied by a power of ten.
    Scaled(Box<Node>, i128),
    Add(Box<[Node; 2]>),
    Subtract(Box<[Node; 2]>),
    Multiply(Box<[Node; 2]>),
}

/// The result exceeds 127 bits, and the evaluator has to compute it.
#[derive(Debug)]
pub(crate) struct Overflow;

impl NumberKernel {
    /// Whether an expression over slot `table` may have a kernel. Its constants can still prevent
    /// one.
    pub fn is_possible(e: &Expr, table: usize) -> bool {
        e.ty.class() == Class::Decimal && is_number(e, table)
    }

    /// Compiles `e`; `None`: the evaluator has to compute it. `cx` has no row.
    pub fn compile<'a>(cx: &EvalCx<'a>, images: Images<'_>, e: &'a Expr) -> Option<NumberKernel> {
        let possible = NumberKernel::is_possible(e, images.table);
        let (root, scale) = possible.then(|| node(cx, images, e))??;
        Some(NumberKernel { root, scale })
    }

    /// The number of decimals.
    pub fn scale(&self) -> u8 {
        self.scale
    }

    /// The unscaled value for a row image; `None`: NULL.
    #[inline]
    pub fn value(&self, image: &[u8]) -> Result<Option<i128>, Overflow> {
        self.root.value(image)
    }
}

impl Node {
    fn value(&self, image: &[u8]) -> Result<Option<i128>, Overflow> {
        let both = |sides: &[Node; 2], f: fn(i128, i128) -> Option<i128>| {
            let (a, b) = (sides[0].value(image)?, sides[1].value(image)?);
            match (a, b) {
                (Some(a), Some(b)) => f(a, b).ok_or(Overflow).map(Some),
                _ => Ok(None),
            }
        };
        match self {
            Node::Column(KeyField::Unscaled(field)) => Ok(field.key(image).map(i128::from)),
            Node::Column(KeyField::Ordered(field)) => {
                Ok(field.key(image).map(|key| field.number(key)))
            }
            Node::Constant(v) => Ok(Some(*v)),
            Node::Negative(inner) => Ok(inner.value(image)?.map(|v| -v)),
            Node::Scaled(inner, unit) => match inner.value(image)? {
                Some(v) => v.checked_mul(*unit).ok_or(Overflow).map(Some),
                None => Ok(None),
            },
            Node::Add(sides) => both(sides, i128::checked_add),
            Node::Subtract(sides) => both(sides, i128::checked_sub),
            Node::Multiply(sides) => both(sides, i128::checked_mul),
        }
    }
}

/// Whether `e` consists of exact numeric columns of the table, constants, and DECIMAL sums,
/// differences and products. (Integer operations may overflow with an error of their own.)
fn is_number(e: &Expr, table: usize) -> bool {
    let class = e.ty.class();
    match &e.kind {
        ExprKind::Column(at) => {
            usize::from(at.table) == table && matches!(class, Class::Int | Class::Decimal)
        }
        ExprKind::Const(_) | ExprKind::Param(_) => {
            matches!(class, Class::Int | Class::Decimal)
        }
        ExprKind::Neg(inner) => class == Class::Decimal && is_number(inner, table),
        ExprKind::Arith(ArithOp::Add | ArithOp::Sub | ArithOp::Mul, sides) => {
            class == Class::Decimal && sides.iter().all(|e| is_number(e, table))
        }
        _ => false,
    }
}

/// Compiles an expression of this form. Returns the node and its number of decimals.
fn node<'a>(cx: &EvalCx<'a>, images: Images<'_>, e: &'a Expr) -> Option<(Node, u8)> {
    match &e.kind {
        ExprKind::Column(at) => {
            let field = KeyField::of(images.layout, (images.ordinal)(at.column.into())?)?;
            match field {
                KeyField::Unscaled(unscaled) => Some((Node::Column(field), unscaled.scale())),
                KeyField::Ordered(ordered) => {
                    ordered.is_integer().then_some((Node::Column(field), 0))
                }
            }
        }
        ExprKind::Neg(inner) => {
            let (inner, scale) = node(cx, images, inner)?;
            Some((Node::Negative(Box::new(inner)), scale))
        }
        ExprKind::Arith(op, sides) => {
            let (a, a_scale) = node(cx, images, &sides[0])?;
            let (b, b_scale) = node(cx, images, &sides[1])?;
            if *op == ArithOp::Mul {
                let scale = a_scale.checked_add(b_scale).filter(|s| *s <= MAX_SCALE)?;
                return Some((Node::Multiply(Box::new([a, b])), scale));
            }
            let scale = a_scale.max(b_scale);
            let sides = Box::new([scaled(a, scale - a_scale)?, scaled(b, scale - b_scale)?]);
            let node = match op {
                ArithOp::Add => Node::Add(sides),
                _ => Node::Subtract(sides),
            };
            Some((node, scale))
        }
        _ => {
            let v = constant(cx, e).filter(is_exact_number)?;
            let number: Decimal = convert::to_decimal(cx, &v, &e.ty)?;
            let (unscaled, _) = number.floor_unscaled(number.scale())?;
            Some((Node::Constant(unscaled), number.scale()))
        }
    }
}

fn scaled(node: Node, digits: u8) -> Option<Node> {
    Some(match digits {
        0 => node,
        _ => Node::Scaled(Box::new(node), 10i128.checked_pow(digits.into())?),
    })
}
