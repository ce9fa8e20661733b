//! Prints expressions as MySQL does (`Item::print`), for messages such as error 1690.
//!
//! Columns are named as in the current query block. A column of a derived table that MySQL would
//! merge is printed as the expression behind it. If a part has no name here (a column of an
//! enclosing query, a subquery), the whole expression has no text.

pub(crate) mod names;
mod window;

use nfold_plan::expr::is_constant;
use nfold_plan::expr::{BitOp, Class, ColumnAt, Expr, ExprKind};
use nfold_plan::fulltext::{MATCH, MatchCall, SearchMode};
use nfold_plan::func::FuncSet;
use nfold_plan::query::{AggFunc, Aggregate, Block, QueryBody, TableSource};
use nfold_sql::ast::IsTest;
use nfold_sql::printer::Quoted;
use nfold_types::{ColumnType, TypeKind, Value};

use super::eval::{EvalCx, Scope, Val, arith, convert};

impl EvalCx<'_> {
    /// The text of an expression.
    pub(crate) fn describe(&self, e: &Expr) -> String {
        let printer = Printer {
            cx: *self,
            names: None,
        };
        printer
            .text(e, self.st.scope)
            .unwrap_or_else(|| "expression".into())
    }

    /// The text of a function call, as [`Self::describe`].
    pub(crate) fn describe_call(&self, name: &str, args: &[Expr]) -> String {
        let args: Vec<String> = args.iter().map(|e| self.describe(e)).collect();
        format!("{name}({})", args.join(","))
    }
}

pub(crate) struct Printer<'a> {
    cx: EvalCx<'a>,
    /// For EXPLAIN, which has a name for every part of a query.
    names: Option<&'a names::QueryNames<'a>>,
}

impl Printer<'_> {
    fn text(&self, e: &Expr, scope: Scope<'_>) -> Option<String> {
        use ExprKind::*;
        let text = |e: &Expr| self.text(e, scope);
        let infix = |op: &str, s: &[Expr; 2]| -> Option<String> {
            Some(format!("({} {op} {})", text(&s[0])?, text(&s[1])?))
        };
        Some(match &e.kind {
            Const(v) => self.value(v, e),
            Param(n) if self.cx.st.params.is_marker(*n) => "?".into(),
            Param(n) => self.value(&self.cx.st.params.get(*n).to_owned(), e),
            Column(at) => column(self, *at, scope)?,
            UserVar(name) | VaryingUserVar(name) => format!("(@{})", Quoted(name)),
            AssignUserVar(name, value) => format!("(@{name}:={})", text(value)?),
            SysVar { name, .. } => format!("@@{name}"),
            Neg(inner) => format!("-({})", text(inner)?),
            BitNot(inner) => format!("~({})", text(inner)?),
            Arith(op, s) => infix(arith::symbol(*op), s)?,
            Bit(op, s) => infix(bit_symbol(*op), s)?,
            Compare { op, sides, .. } => infix(op.symbol(), sides)?,
            And(list) => self.truths(list, " and ", scope)?,
            Or(list) => self.truths(list, " or ", scope)?,
            Xor(s) => self.truths(&**s, " xor ", scope)?,
            Not(inner) => format!("(not({}))", text(inner)?),
            Is {
                expr,
                test,
                negated,
            } => {
                let value = match test {
                    IsTest::Null => "null",
                    IsTest::True => "true",
                    IsTest::False => "false",
                    IsTest::Unknown => "unknown",
                };
                format!("({} is {}{value})", text(expr)?, not(*negated))
            }
            Between { parts, negated, .. } => {
                let [e, low, high] = &**parts;
                let (low, high) = (text(low)?, text(high)?);
                format!("({} {}between {low} and {high})", text(e)?, not(*negated))
            }
            In {
                expr,
                list,
                negated,
            } => {
                let members: Option<Vec<String>> = list.iter().map(|(_, e)| text(e)).collect();
                format!(
                    "({} {}in ({}))",
                    text(expr)?,
                    not(*negated),
                    members?.join(",")
                )
            }
            InParam {
                left,
                list,
                negated,
                ..
            } if left.len() == 1 => {
                let (members, _) = self.cx.st.params.list(*list);
                let shown = |v: nfold_types::ValueRef<'_>| self.value(&v.to_owned(), e);
                let members: Vec<String> = members.map(shown).collect();
                format!(
                    "({} {}in ({}))",
                    text(&left[0])?,
                    not(*negated),
                    members.join(",")
                )
            }
            Like {
                expr,
                pattern,
                negated,
                ..
            } => {
                let like = format!("({} like {})", text(expr)?, text(pattern)?);
                if *negated {
                    format!("(not({like}))")
                } else {
                    like
                }
            }
            Case { whens, otherwise } => self.case(whens, otherwise.as_deref(), scope)?,
            Cast { expr, to } => self.cast(expr, to, scope)?,
            Collate(inner) => {
                let name = e.ty.collation().known().name;
                format!("({} collate {name})", text(inner)?)
            }
            Extract { unit, expr } => {
                format!("extract({} from {})", unit_name(*unit), text(expr)?)
            }
            IntervalArith {
                expr,
                amount,
                unit,
                subtract,
            } => {
                let sign = if *subtract { '-' } else { '+' };
                let (amount, unit) = (text(amount)?, unit_name(*unit));
                format!("({} {sign} interval {amount} {unit})", text(expr)?)
            }
            TimestampDiff { unit, from, to } => {
                let unit = unit_name(*unit).to_uppercase();
                format!("timestampdiff({unit},{},{})", text(from)?, text(to)?)
            }
            Call { func, args } => {
                self.function(super::func::Builtins.get(*func).name, args, scope)?
            }
            _ => return names::text(self, e, scope),
        })
    }

    fn case(
        &self,
        whens: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
        scope: Scope<'_>,
    ) -> Option<String> {
        let mut out = String::from("(case");
        for (when, then) in whens {
            let (when, then) = (self.text(when, scope)?, self.text(then, scope)?);
            out.push_str(&format!(" when {when} then {then}"));
        }
        if let Some(e) = otherwise {
            out.push_str(&format!(" else {}", self.text(e, scope)?));
        }
        Some(out + " end)")
    }

    /// Prints a call of the function `name`.
    fn function(&self, name: &str, args: &[Expr], scope: Scope<'_>) -> Option<String> {
        use nfold_plan::func::{COMPUTED_ONCE, IN_RANGE, PADDED, YEAR_CONSTANT};
        let text = |e: &Expr| self.text(e, scope);
        Some(match (name, args) {
            (PADDED | COMPUTED_ONCE | YEAR_CONSTANT | IN_RANGE, [inner]) => text(inner)?,
            (
                "nullif",
                [
                    a,
                    Expr {
                        kind: ExprKind::Compare { sides, .. },
                        ..
                    },
                ],
            ) => format!("nullif({},{})", text(a)?, text(&sides[1])?),
            ("instr", [a, b]) => format!("locate({},{})", text(b)?, text(a)?),
            ("datediff", [a, b]) => format!("(to_days({}) - to_days({}))", text(a)?, text(b)?),
            (MATCH, args) => self.search(args, scope)?,
            _ => format!("{}({})", printed_name(name), self.list(args, ",", scope)?),
        })
    }

    /// Prints MATCH ... AGAINST.
    fn search(&self, args: &[Expr], scope: Scope<'_>) -> Option<String> {
        let call = MatchCall::of_args(args)?;
        let mode = match call.target.mode {
            SearchMode::NaturalLanguage => "",
            SearchMode::Boolean => " in boolean mode",
            SearchMode::Expanded => " with query expansion",
        };
        let columns = self.list(call.columns, ",", scope)?;
        let against = self.text(call.against, scope)?;
        Some(format!("(match {columns} against ({against}{mode}))"))
    }

    fn list(&self, list: &[Expr], between: &str, scope: Scope<'_>) -> Option<String> {
        let texts: Option<Vec<String>> = list.iter().map(|e| self.text(e, scope)).collect();
        Some(texts?.join(between))
    }

    /// Prints the operands of AND, OR and XOR. An operand that is no condition is compared with
    /// zero.
    fn truths(&self, list: &[Expr], between: &str, scope: Scope<'_>) -> Option<String> {
        use ExprKind::*;
        let truth = |e: &Expr| {
            let text = self.text(e, scope)?;
            let condition = matches!(
                e.kind,
                Compare { .. } | And(_) | Or(_) | Xor(_) | Not(_) | Is { .. } | Between { .. }
            ) || matches!(e.kind, In { .. } | InParam { .. } | Like { .. })
                || matches!(&e.kind, InRows { .. } | CompareRows { .. })
                || matches!(&e.kind, Subquery { use_as, .. } if names::is_condition(use_as));
            Some(if condition {
                text
            } else {
                format!("(0 <> {text})")
            })
        };
        let texts: Option<Vec<String>> = list.iter().map(truth).collect();
        Some(format!("({})", texts?.join(between)))
    }

    fn cast(&self, inner: &Expr, to: &ColumnType, scope: Scope<'_>) -> Option<String> {
        let inner_text = self.text(inner, scope)?;
        let written = matches!(inner.kind, ExprKind::Const(_)) && is_constant(inner);
        let fraction = |f: u8| {
            if f == 0 {
                String::new()
            } else {
                format!("({f})")
            }
        };
        let target = match (&to.kind, Class::of(to)) {
            (TypeKind::Date, _) if written => return Some(format!("DATE{inner_text}")),
            (TypeKind::Time(_), _) if written => return Some(format!("TIME{inner_text}")),
            (TypeKind::DateTime(_), _) if written => return Some(format!("TIMESTAMP{inner_text}")),
            (_, Class::Int) if to.unsigned => "unsigned".into(),
            (_, Class::Int) => "signed".into(),
            (TypeKind::Decimal { precision, scale }, _) => format!("decimal({precision},{scale})"),
            (TypeKind::Float, _) => "float".into(),
            (_, Class::Double) => "double".into(),
            (TypeKind::Date, _) => "date".into(),
            (TypeKind::Time(f), _) => format!("time{}", fraction(*f)),
            (TypeKind::DateTime(f), _) => format!("datetime{}", fraction(*f)),
            (_, Class::String) if to.charset().is_binary() => "binary".into(),
            _ => format!("char charset {}", to.charset().name),
        };
        Some(format!("cast({inner_text} as {target})"))
    }

    /// Prints a constant. A negative number is printed as a minus operator and a positive number.
    fn value(&self, v: &Value, e: &Expr) -> String {
        match v {
            Value::Null => "NULL".into(),
            Value::Bytes(b) if self.names.is_some() => names::string(b),
            Value::Bytes(b) => format!("'{}'", String::from_utf8_lossy(b)),
            v => {
                let mut out = Vec::new();
                convert::write_text(&Val::from_ref(v.as_ref()), &e.ty, &mut out);
                let text = String::from_utf8_lossy(&out);
                match text.strip_prefix('-') {
                    Some(positive) => format!("-({positive})"),
                    None if self.names.is_some() => names::literal(v, &text),
                    None => text.into_owned(),
                }
            }
        }
    }

    fn aggregate(&self, a: &Aggregate, block: &Block) -> Option<String> {
        let name = match a.func {
            AggFunc::CountStar => return Some("count(0)".into()),
            AggFunc::Any => return self.text(a.args.first()?, Scope::Tables(block)),
            func => aggregate_name(func)?,
        };
        let distinct = if a.distinct { "distinct " } else { "" };
        let args = self.list(&a.args, ",", Scope::Tables(block))?;
        let concat = match self.names.is_some() && a.func == AggFunc::GroupConcat {
            true => names::group_concat(self, a, block)?,
            false => String::new(),
        };
        Some(format!("{name}({distinct}{args}{concat})"))
    }
}

fn column(p: &Printer<'_>, at: ColumnAt, scope: Scope<'_>) -> Option<String> {
    let n = usize::from(at.column);
    match scope {
        Scope::None => None,
        Scope::Groups(block) if at.table > 0 => {
            window::text(p, block, usize::from(at.table) - 1, n, scope)
        }
        Scope::Groups(block) => {
            let group = block.group.as_ref()?;
            match group.keys.get(n) {
                Some(key) => p.text(key, Scope::Tables(block)),
                None => p.aggregate(
                    group
                        .aggregates
                        .get(n.checked_sub(group.first_aggregate())?)?,
                    block,
                ),
            }
        }
        Scope::Tables(block) if usize::from(at.table) >= block.tables.len() => {
            let pass = usize::from(at.table) - block.tables.len();
            window::text(p, block, pass, n, scope)
        }
        Scope::Tables(block) => {
            let slot = block.tables.get(usize::from(at.table))?;
            match &slot.source {
                source if p.names.is_some() => names::column(p, source, &slot.alias, n),
                TableSource::Table(t) | TableSource::Virtual(t) => Some(format!(
                    "{}.{}.{}",
                    Quoted(&t.schema),
                    Quoted(&slot.alias),
                    Quoted(&t.columns.get(n)?.name)
                )),
                TableSource::Json(t) => {
                    let name = &t.shape.columns.get(n)?.name;
                    Some(format!("{}.{}", Quoted(&slot.alias), Quoted(name)))
                }
                TableSource::Derived(q) => match &q.body {
                    QueryBody::Block(inner) if merges(inner) && q.limit.is_none() => {
                        p.text(inner.select.get(n)?, Scope::Tables(inner))
                    }
                    _ => {
                        let name = &q.columns.get(n)?.name;
                        Some(format!("{}.{}", Quoted(&slot.alias), Quoted(name)))
                    }
                },
            }
        }
    }
}

/// Whether MySQL merges such a derived table into the query around it.
fn merges(b: &Block) -> bool {
    let plain = b.group.is_none() && b.windows.is_empty() && b.having.is_empty();
    plain && !b.distinct && !b.tables.is_empty()
}

fn bit_symbol(op: BitOp) -> &'static str {
    match op {
        BitOp::And => "&",
        BitOp::Or => "|",
        BitOp::Xor => "^",
        BitOp::ShiftLeft => "<<",
        BitOp::ShiftRight => ">>",
    }
}

/// The printed name of an aggregate; `None` if MySQL has no such aggregate.
pub(crate) fn aggregate_name(func: AggFunc) -> Option<&'static str> {
    Some(match func {
        AggFunc::CountStar | AggFunc::Count => "count",
        AggFunc::Sum => "sum",
        AggFunc::Avg => "avg",
        AggFunc::Min => "min",
        AggFunc::Max => "max",
        AggFunc::BitAnd => "bit_and",
        AggFunc::BitOr => "bit_or",
        AggFunc::BitXor => "bit_xor",
        AggFunc::StdPop => "std",
        AggFunc::StdSamp => "stddev_samp",
        AggFunc::VarPop => "variance",
        AggFunc::VarSamp => "var_samp",
        AggFunc::GroupConcat => "group_concat",
        AggFunc::JsonArray => "json_arrayagg",
        AggFunc::JsonObject => "json_objectagg",
        AggFunc::Any => return None,
    })
}

/// The word of a negated operator.
fn not(negated: bool) -> &'static str {
    match negated {
        true => "not ",
        false => "",
    }
}

/// The printed name of a function that has several.
fn printed_name(name: &str) -> &str {
    match name {
        "ceil" => "ceiling",
        "power" => "pow",
        "character_length" => "char_length",
        "octet_length" => "length",
        "lcase" => "lower",
        "ucase" => "upper",
        "mid" | "substring" => "substr",
        "day" => "dayofmonth",
        "position" => "locate",
        other => other,
    }
}

fn unit_name(unit: nfold_sql::ast::IntervalUnit) -> String {
    // A unit's words are the variant's name, split at capital letters and joined by underscores.
    let mut out = String::new();
    for c in format!("{unit:?}").chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
