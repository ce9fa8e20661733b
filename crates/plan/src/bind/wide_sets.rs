//! String functions over ucs2, utf16, utf16le and utf32. Their arguments are converted to utf8mb4,
//! under the collation with the same weights, and their result is converted back.
//!
//! The functions themselves read ASCII characters as single bytes. utf8mb4 has all characters of
//! these sets.

use nfold_sql::ast::TrimSide;
use nfold_types::SqlError;
use nfold_types::collation::{Collation, CollationId};

use crate::logical::expr::{Class, Expr, ExprKind, ExprType, FuncId};
use crate::logical::func::{FuncDef, Infer};

/// Functions that need no conversion: they read bytes, return an argument, or return a property of
/// its type.
const BY_THEMSELVES: &[&str] = &[
    "aes_decrypt",
    "aes_encrypt",
    "ascii",
    "bit_length",
    "char_length",
    "character_length",
    "charset",
    "coalesce",
    "coercibility",
    "collation",
    "compress",
    "crc32",
    "hex",
    "if",
    "ifnull",
    "isnull",
    "length",
    "md5",
    "nullif",
    "octet_length",
    "ord",
    "sha",
    "sha1",
    "sha2",
    "to_base64",
    "uncompress",
    "uncompressed_length",
    "weight_string",
];

/// Whether a type is a string in one of these character sets.
pub(super) fn is_wide(ty: &ExprType) -> bool {
    ty.class() == Class::String && ty.col.charset().is_wide()
}

/// Whether the function is evaluated in utf8mb4 for these arguments.
pub(super) fn is_converted(name: &str, args: &[Expr]) -> bool {
    args.iter().any(|e| is_wide(&e.ty)) && !BY_THEMSELVES.contains(&name)
}

/// The utf8mb4 collation with the weights of `collation`.
fn in_utf8mb4(collation: CollationId) -> CollationId {
    let name = collation.known().name;
    let order = name.split_once('_').map_or("", |(_, order)| order);
    // Besides ucs2, only utf8mb3 has the order of ucs2_general_mysql500_ci.
    let found = ["utf8mb4", "utf8mb3"].iter().find_map(|set| {
        let name = format!("{set}_{order}");
        Collation::by_name(&name)
    });
    found.map_or(CollationId::UTF8MB4_BIN, |found| found.id)
}

fn converted(e: Expr, collation: CollationId) -> Expr {
    let chars = e.ty.char_length();
    let ty = ExprType::string(chars, collation, e.ty.coercibility, e.ty.nullable);
    Expr::cast(e, ty)
}

/// Converts an argument to utf8mb4 if it is a string in one of these sets.
fn argument(e: Expr) -> Expr {
    match is_wide(&e.ty) {
        true => {
            let collation = in_utf8mb4(e.ty.col.collation);
            converted(e, collation)
        }
        false => e,
    }
}

/// Converts the result of a function back. `ty` is its type before the arguments were converted.
fn result(e: Expr, ty: ExprType) -> Expr {
    match is_wide(&ty) {
        true => Expr::cast(e, ty),
        false => e,
    }
}

/// Binds a call of a function that is evaluated in utf8mb4.
pub(super) fn call(
    func: FuncId,
    def: &FuncDef,
    infer: &Infer<'_>,
    args: Vec<Expr>,
) -> Result<Expr, SqlError> {
    // Errors name the collations of the original arguments.
    let shown = (def.infer)(infer, &mut args.clone())?;
    let mut args: Vec<Expr> = args.into_iter().map(argument).collect();
    let ty = (def.infer)(infer, &mut args)?;
    let kind = ExprKind::Call { func, args };
    Ok(result(Expr { kind, ty }, shown))
}

/// Binds TRIM with a result in one of these sets.
pub(super) fn trimmed(side: TrimSide, what: Option<Expr>, expr: Expr, ty: ExprType) -> Expr {
    let inner = ExprType::string(
        ty.char_length(),
        in_utf8mb4(ty.col.collation),
        ty.coercibility,
        ty.nullable,
    );
    let kind = ExprKind::Trim {
        side,
        what: what.map(|e| Box::new(argument(e))),
        expr: Box::new(argument(expr)),
    };
    result(Expr { kind, ty: inner }, ty)
}
