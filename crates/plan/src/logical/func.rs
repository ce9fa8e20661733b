//! The binder's view of built-in functions: names, argument counts and result types. The executor
//! implements their evaluation.

use nfold_types::collation::CollationId;
use nfold_types::{ErrorCode, SqlError, TypeKind, Value};

use super::collate::{self, Merged};
use super::expr::{
    Class, Coercibility, Expr, ExprKind, ExprType, FuncId, TextOrigin, long_string_type,
};

/// Flag of a function that has a side effect, or that may return different values within one
/// statement (`RAND()`, `SLEEP()`, `UUID()`). It is evaluated for each row.
pub const VOLATILE: u8 = 1;

/// Flag of a function that returns one of its arguments unchanged, which decides how its text is
/// read as a number.
pub const UNCHANGED: u8 = 2;

/// Flag of a function whose text MySQL reads as a number without warning 1292.
pub const UNCHECKED: u8 = 4;

/// Flag of a function whose text MySQL reads as a DECIMAL through an integer.
pub const MATCHED: u8 = 8;

/// An internal function, which SQL cannot name: converts a constant that is compared with a YEAR.
pub const YEAR_CONSTANT: &str = "a constant as YEAR";

/// An internal function, which SQL cannot name: pads a CHAR value with spaces to its full length.
pub const PADDED: &str = "a padded CHAR";

/// An internal function, which SQL cannot name: a constant that is computed once in an execution.
pub const COMPUTED_ONCE: &str = "a computed constant";

/// An internal function, which SQL cannot name: whether a comparison of a column with a literal
/// holds for any value of the column's type. It reads no row.
pub const IN_RANGE: &str = "a comparison within a column's range";

/// A function as the binder sees it.
#[derive(Debug)]
pub struct FuncDef {
    /// In lower case, as the parser folds names.
    pub name: &'static str,
    pub min_args: u8,
    /// The maximum number of arguments; [`ANY_ARGS`] for no limit.
    pub max_args: u8,
    /// Computes the result type from the arguments. May wrap arguments, for example in a cast.
    pub infer: fn(&Infer<'_>, &mut [Expr]) -> Result<ExprType, SqlError>,
    /// [`VOLATILE`], [`UNCHANGED`], [`UNCHECKED`], [`MATCHED`].
    pub flags: u8,
}

impl FuncDef {
    /// The origin of the function's text. `of_arguments` is the common one of its arguments.
    pub(crate) fn origin(&self, of_arguments: TextOrigin) -> TextOrigin {
        match self.flags {
            flags if flags & MATCHED != 0 => TextOrigin::Matched,
            flags if flags & UNCHECKED != 0 => TextOrigin::Cached,
            flags if flags & UNCHANGED != 0 => of_arguments,
            _ => TextOrigin::Computed,
        }
    }
}

/// No limit on the number of arguments.
pub const ANY_ARGS: u8 = u8::MAX;

/// The registry of built-in functions.
pub trait FuncSet: Sync {
    /// Finds a function by its name in lower case.
    fn find(&self, name: &str) -> Option<(FuncId, &'static FuncDef)>;
    /// The function with this id.
    fn get(&self, id: FuncId) -> &'static FuncDef;
    /// The value of an expression of literals, if it can be computed while a statement is bound.
    fn value_of(&self, _e: &Expr) -> Option<Value> {
        None
    }
}

/// The context of type inference.
pub struct Infer<'a> {
    /// The function's name in error messages.
    pub name: &'a str,
    /// The function's name as written, which error 1582 shows.
    pub written: &'a str,
    /// `collation_connection`.
    pub connection: CollationId,
    pub funcs: &'a dyn FuncSet,
}

impl Infer<'_> {
    /// Merges the collations of string arguments. Error 1267 for two arguments, 1270 for three,
    /// 1271 for more.
    pub fn merge(&self, args: &[&Expr]) -> Result<Merged, SqlError> {
        collate::merge(args.iter().map(|e| &e.ty), self.connection, self.name)
    }

    /// As [`Self::merge`], for arguments that are compared with one another.
    pub fn comparable(&self, args: &[&Expr]) -> Result<Merged, SqlError> {
        collate::comparable(args.iter().map(|e| &e.ty), self.connection, self.name)
    }

    /// A string result of at most `chars` characters, in the collation merged from `args`. It is
    /// nullable: a value that is too long for the client is NULL.
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

    /// As [`Self::string_from`], for a length that counts characters, not bytes, or is unknown.
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

    /// A string result in the connection's collation, independent of the arguments.
    pub fn connection_string(&self, chars: u64) -> ExprType {
        ExprType::string(chars, self.connection, Coercibility::Coercible, true)
    }

    /// The total length of the arguments in characters, as text in their merged collation.
    pub fn total_length(&self, args: &[&Expr]) -> Result<u64, SqlError> {
        let collation = self.merge(args)?.collation;
        let lengths = args.iter().map(|e| e.ty.length_in(collation));
        Ok(lengths.fold(0, u64::saturating_add))
    }

    /// The common type of alternatives (IF, CASE, COALESCE).
    pub fn common(&self, args: &[&Expr]) -> Result<ExprType, SqlError> {
        let types: Vec<&ExprType> = args.iter().map(|e| &e.ty).collect();
        let ty = collate::common_type(&types, self.connection, self.name)?;
        if ty.class() == Class::String {
            collate::convertible(args.iter().copied(), ty.collation())?;
        }
        Ok(ty.computed())
    }

    /// Whether evaluating an argument twice may return different values or has a side effect.
    pub fn is_volatile(&self, e: &Expr) -> bool {
        is_volatile(self.funcs, e)
    }

    /// Error 1210: an invalid argument.
    pub fn wrong_argument(&self) -> SqlError {
        SqlError::new(ErrorCode::ER_WRONG_ARGUMENTS, &[&self.name])
    }
}

/// Whether any argument may be NULL.
pub fn any_nullable(args: &[Expr]) -> bool {
    args.iter().any(|e| e.ty.nullable)
}

/// The type INT of `CHARS` characters, nullable if an argument is.
pub fn infer_int<const CHARS: u32>(_: &Infer<'_>, args: &mut [Expr]) -> Result<ExprType, SqlError> {
    Ok(ExprType::int(CHARS, any_nullable(args)))
}

/// The type INT of `CHARS` characters, nullable.
pub fn infer_int_null<const CHARS: u32>(
    _: &Infer<'_>,
    _: &mut [Expr],
) -> Result<ExprType, SqlError> {
    Ok(ExprType::int(CHARS, true))
}

/// The type DOUBLE, nullable.
pub fn infer_double_null(_: &Infer<'_>, _: &mut [Expr]) -> Result<ExprType, SqlError> {
    Ok(ExprType::double(true))
}

/// The numeric type of a function that keeps the kind of its argument: integers stay integers,
/// strings and dates become DOUBLE.
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

/// Whether evaluating an expression twice may return different values or has a side effect.
pub(crate) fn is_volatile(funcs: &dyn FuncSet, e: &Expr) -> bool {
    e.any(&mut |e| match &e.kind {
        ExprKind::Call { func, .. } => funcs.get(*func).flags & VOLATILE != 0,
        ExprKind::AssignUserVar(..) | ExprKind::VaryingUserVar(_) => true,
        _ => false,
    })
}
