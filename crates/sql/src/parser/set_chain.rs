//! A chain of set operations becomes a tree of few levels: code that walks a tree uses recursion.
//!
//! # Picture
//! ```text
//!  a UNION b UNION c UNION d       up to LEFT_DEEP_MAX operands       more operands of one operation
//!                                         ∪                                   ∪
//!                                       ∪   d                             ∪       ∪
//!                                     ∪   c                             a   b   c   d
//!                                   a   b
//! ```
//! UNION and INTERSECT are associative, so both trees have the same rows. EXCEPT is not: its trees
//! are left-deep.

use crate::ast::{QueryBody, SetOp};

/// More operands of one operation become a balanced tree of left-deep ones.
const LEFT_DEEP_MAX: usize = 64;

/// The operands of one set operation, as far as they are parsed.
pub(super) struct SetChain {
    op: SetOp,
    distinct: bool,
    operands: Vec<QueryBody>,
    /// Operations of other kinds that the first operand consists of.
    before: u32,
}

impl SetChain {
    /// A chain of one operand.
    pub fn of(first: QueryBody) -> SetChain {
        SetChain {
            op: SetOp::Union,
            distinct: false,
            operands: vec![first],
            before: 0,
        }
    }

    /// Appends an operation. One of another kind than those before takes all of them as its left
    /// operand.
    pub fn add(&mut self, op: SetOp, distinct: bool, right: QueryBody) {
        if (op, distinct) != (self.op, self.distinct) {
            self.before = self.height();
            let operands = std::mem::take(&mut self.operands);
            self.operands.push(tree(self.op, self.distinct, operands));
            (self.op, self.distinct) = (op, distinct);
        }
        self.operands.push(right);
    }

    /// Levels of set operations in the tree.
    pub fn height(&self) -> u32 {
        let mut operands = self.operands.len();
        let mut levels = self.before;
        while self.op != SetOp::Except && operands > LEFT_DEEP_MAX {
            operands = operands.div_ceil(2);
            levels += 1;
        }
        levels.saturating_add(u32::try_from(operands - 1).unwrap_or(u32::MAX))
    }

    pub fn into_body(self) -> QueryBody {
        tree(self.op, self.distinct, self.operands)
    }
}

/// `operands` is not empty.
fn tree(op: SetOp, distinct: bool, mut operands: Vec<QueryBody>) -> QueryBody {
    let join = |left, right| QueryBody::SetOperation {
        op,
        distinct,
        left: Box::new(left),
        right: Box::new(right),
    };
    if op != SetOp::Except && operands.len() > LEFT_DEEP_MAX {
        let right = operands.split_off(operands.len().div_ceil(2));
        return join(tree(op, distinct, operands), tree(op, distinct, right));
    }
    let joined = operands.into_iter().reduce(join);
    joined.expect("a chain has a first operand")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operand() -> QueryBody {
        QueryBody::Values(Vec::new())
    }

    fn levels(body: &QueryBody) -> u32 {
        match body {
            QueryBody::SetOperation { left, right, .. } => 1 + levels(left).max(levels(right)),
            _ => 0,
        }
    }

    fn operands(body: &QueryBody) -> usize {
        match body {
            QueryBody::SetOperation { left, right, .. } => operands(left) + operands(right),
            _ => 1,
        }
    }

    #[test]
    fn height_is_that_of_the_tree() {
        for op in [SetOp::Union, SetOp::Intersect, SetOp::Except] {
            for count in [1, 2, 63, 64, 65, 200, 1000] {
                let mut chain = SetChain::of(operand());
                chain.add(SetOp::Union, true, operand());
                for _ in 0..count {
                    chain.add(op, false, operand());
                }
                let height = chain.height();
                let body = chain.into_body();
                assert_eq!(levels(&body), height, "{op:?} {count}");
                assert_eq!(operands(&body), count + 2);
                assert_eq!(
                    height > 100,
                    op == SetOp::Except && count > 100,
                    "{op:?} {count}"
                );
            }
        }
    }
}
