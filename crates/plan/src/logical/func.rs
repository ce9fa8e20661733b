//! What the binder must know of a built-in function. The functions themselves, with their
//! evaluation, are the executor's.

use nfold_types::collation::CollationId;
use nfold_types::{ErrorCode, SqlError, TypeKind};

use super::collate::{self, Merged};
use super::expr::{Class, Coercibility, Expr, ExprKind, ExprType, FuncId, long_string_type};

/// Never the same value twice in a statement, or a side effect: it is evaluated for each row
/// (`RAND()`, `SLEEP()`, `UUID()`).
pub const VOLATILE: u8 = 1;

/// A function that no statement can name: what a constant means beside a YEAR column.
pub const YEAR_CONSTANT: &str = "a constant as YEAR";

/// A function that no statement can name: a CHAR with its trailing spaces.
pub const PADDED: &str = "a padded CHAR";

/// A function as the binder sees it.
#[derive(Debug)]
pub struct FuncDef {
    /// Lower case, as the parser folds it.
    pub name: &'static str,
    pub min_args: u8,
    /// [`ANY_ARGS`]: as many as one likes.
    pub max_args: u8,
    /// Result type from the arguments. It may rewrite an argument (wrap it in a cast, say).
    pub infer: fn(&Infer<'_>, &mut [Expr]) -> Result<ExprType, SqlError>,
    /// [`VOLATILE`] or 0.
    pub flags: u8,
}

/// No upper limit on arguments.
pub const ANY_ARGS: u8 = u8::MAX;

/// Finds functions by name.
pub trait FuncSet: Sync {
    /// The function called `name` (lower case).
    fn find(&self, name: &str) -> Option<(FuncId, &'static FuncDef)>;
    /// The function with this id.
    fn get(&self, id: FuncId) -> &'static FuncDef;
}

/// What type inference may ask for.
pub struct Infer<'a> {
    /// For error messages: the function's name as MySQL shows it.
    pub name: &'a str,
    /// As it was written: error 1582 shows it so.
    pub written: &'a str,
    /// `collation_connection`
    pub connection: CollationId,
}

impl Infer<'_> {
    /// Merges the collations of string arguments (error 1267, or 1270 for three, 1271 for more).
    pub fn merge(&self, args: &[&Expr]) -> Result<Merged, SqlError> {
        collate::merge(args.iter().map(|e| &e.ty), self.connection, self.name)
    }

    /// As [`Self::merge`], for arguments that are compared with one another.
    pub fn comparable(&self, args: &[&Expr]) -> Result<Merged, SqlError> {
        collate::comparable(args.iter().map(|e| &e.ty), self.connection, self.name)
    }

    /// A string result of at most `chars` characters whose collation is merged from `args`. It is
    /// NULL where it is too long for a client.
    pub fn string_from(&self, args: &[&Expr], chars: u64) -> Result<ExprType, SqlError> {
        let merged = self.merge(args)?.of_string();
        collate::convertible(args.iter().copied(), merged.collation)?;
        Ok(ExprType::string(
            chars,
            merged.collation,
            merged.coercibility,
            true,
        ))
    }

    /// As [`Self::string_from`], for a length that is given in characters, or not known.
    pub fn long_string_from(
        &self,
        args: &[&Expr],
        chars: Option<u64>,
    ) -> Result<ExprType, SqlError> {
        let mut ty = self.string_from(args, chars.unwrap_or(0))?;
        if chars.is_none() {
            ty.col = long_string_type(u64::MAX, ty.col.collation);
        }
        Ok(ty)
    }

    /// A string of the connection's collation, made by the function itself.
    pub fn connection_string(&self, chars: u64) -> ExprType {
        ExprType::string(chars, self.connection, Coercibility::Coercible, true)
    }

    /// The characters that the arguments take together as text of the collation that they have
    /// together.
    pub fn total_length(&self, args: &[&Expr]) -> Result<u64, SqlError> {
        let collation = self.merge(args)?.collation;
        let lengths = args.iter().map(|e| e.ty.length_in(collation));
        Ok(lengths.fold(0, u64::saturating_add))
    }

    /// The common type of values that stand for one another (IF, CASE, COALESCE, UNION …).
    pub fn common(&self, args: &[&Expr]) -> Result<ExprType, SqlError> {
        let types: Vec<&ExprType> = args.iter().map(|e| &e.ty).collect();
        let ty = collate::common_type(&types, self.connection, self.name)?;
        if ty.class() == Class::String {
            collate::convertible(args.iter().copied(), ty.collation())?;
        }
        Ok(ty.computed())
    }

    /// Error 1210, for an argument that the function cannot take.
    pub fn wrong_argument(&self) -> SqlError {
        SqlError::new(ErrorCode::ER_WRONG_ARGUMENTS, &[&self.name])
    }
}

/// Whether any argument may be NULL.
pub fn any_nullable(args: &[Expr]) -> bool {
    args.iter().any(|e| e.ty.nullable)
}

/// INT result of so many characters, nullable as its arguments are.
pub fn infer_int<const CHARS: u32>(_: &Infer<'_>, args: &mut [Expr]) -> Result<ExprType, SqlError> {
    Ok(ExprType::int(CHARS, any_nullable(args)))
}

/// INT result of so many characters that may be NULL.
pub fn infer_int_null<const CHARS: u32>(
    _: &Infer<'_>,
    _: &mut [Expr],
) -> Result<ExprType, SqlError> {
    Ok(ExprType::int(CHARS, true))
}

/// DOUBLE result that may be NULL.
pub fn infer_double_null(_: &Infer<'_>, _: &mut [Expr]) -> Result<ExprType, SqlError> {
    Ok(ExprType::double(true))
}

/// The numeric result of one argument kept as it is in kind: integers stay integers, strings and
/// dates become DOUBLE.
pub fn infer_numeric_of(args: &[Expr]) -> ExprType {
    let arg = &args[0].ty;
    let mut ty = match arg.class() {
        Class::Int
            if arg.col.unsigned || matches!(arg.col.kind, TypeKind::Bit(_) | TypeKind::Year) =>
        {
            ExprType::ubigint(arg.nullable)
        }
        Class::Int => ExprType::bigint(arg.nullable),
        Class::Decimal => return ExprType::new(arg.col.clone(), arg.nullable),
        _ => return ExprType::double_fixed(arg.decimals(), arg.nullable),
    };
    ty.col.width = arg.max_length() as u32;
    ty
}

/// Whether an expression may have another value at each evaluation, or has a side effect.
pub(crate) fn is_volatile(funcs: &dyn FuncSet, e: &Expr) -> bool {
    e.any(&mut |e| match &e.kind {
        ExprKind::Call { func, .. } => funcs.get(*func).flags & VOLATILE != 0,
        ExprKind::AssignUserVar(..) => true,
        _ => false,
    })
}
