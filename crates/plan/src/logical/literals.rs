//! The values of a statement's literals, for rewrites that depend on them.

use std::cell::RefCell;

use nfold_sql::digest::{Digested, LiteralRole};
use nfold_sql::literal::Lit;
use nfold_types::{Decimal, Value};

/// The literals that are parameters of a statement's plan. A plan that depends on the value of one
/// of them serves only texts with the same literal, so the literal belongs to the plan's key.
pub struct Literals<'a> {
    digest: &'a Digested,
    text: &'a [u8],
    /// Slots whose values the plan depends on.
    read: RefCell<Vec<u32>>,
}

impl<'a> Literals<'a> {
    /// The literals of `text`, of which this is the digest.
    pub fn new(digest: &'a Digested, text: &'a [u8]) -> Literals<'a> {
        Literals {
            digest,
            text,
            read: RefCell::default(),
        }
    }

    /// The value of the literal in slot `n`, upon which the plan depends from now on. `None`: the
    /// slot is a marker or a list, or its literal has no plain value.
    pub(crate) fn read(&self, n: u32) -> Option<Value> {
        let literal = self.digest.literal(n, self.text)?;
        self.read.borrow_mut().push(n);
        Some(match literal {
            Lit::Bool(b) => Value::Int(b.into()),
            Lit::Int { negative, value } => match i64::try_from(value) {
                Ok(v) if negative => Value::Int(-v),
                Ok(v) => Value::Int(v),
                Err(_) if negative => return None,
                Err(_) => Value::UInt(value),
            },
            Lit::Decimal { negative, text } if !negative => {
                Value::Decimal(Decimal::parse_prefix(text).value)
            }
            Lit::String(s) if !s.national => Value::Bytes(s.to_vec()),
            _ => return None,
        })
    }

    /// The roles of the literals in the plan's key. `roles`: as the statement was parsed.
    pub fn roles(&self, roles: &[LiteralRole]) -> Vec<LiteralRole> {
        let mut roles = roles.to_vec();
        for n in self.read.borrow().iter() {
            if let Some(role) = roles.get_mut(*n as usize) {
                *role = LiteralRole::Structural;
            }
        }
        roles
    }
}
