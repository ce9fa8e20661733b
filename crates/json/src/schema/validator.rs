//! Tests a document against a schema.

use std::cmp::Ordering;

use nfold_types::SqlError;

use super::location::{Step, pointer};
use super::references::{reference_of, resolve};
use super::{MatchPattern, SchemaFailure};
use crate::binary::{Doc, DocKind, Scalar};
use crate::compare::compare;
use crate::text::print_unquoted;
use crate::tree::Work;

/// The outcome of a test: `None` where the document is valid.
type Outcome = Result<Option<SchemaFailure>, SqlError>;

/// Returns from the function if the test fails.
macro_rules! require {
    ($outcome:expr) => {
        if let Some(failure) = $outcome? {
            return Ok(Some(failure));
        }
    };
}

pub(super) struct Validator<'a, 'm, 'p> {
    root: Doc<'a>,
    matches: &'m mut MatchPattern<'p>,
    work: &'m Work<'m>,
    /// The steps to the schema at hand, and to the value at hand.
    schema_steps: Vec<Step<'a>>,
    doc_steps: Vec<Step<'a>>,
}

impl<'a, 'm, 'p> Validator<'a, 'm, 'p> {
    pub fn new(
        root: Doc<'a>,
        matches: &'m mut MatchPattern<'p>,
        work: &'m Work<'m>,
    ) -> Validator<'a, 'm, 'p> {
        Validator {
            root,
            matches,
            work,
            schema_steps: Vec::new(),
            doc_steps: Vec::new(),
        }
    }

    fn failure(&self, keyword: &'static str) -> Outcome {
        Ok(Some(SchemaFailure {
            keyword,
            schema: pointer(&self.schema_steps),
            document: pointer(&self.doc_steps),
        }))
    }

    fn unless(&self, valid: bool, keyword: &'static str) -> Outcome {
        match valid {
            true => Ok(None),
            false => self.failure(keyword),
        }
    }

    /// Tests a value. A schema that is no object requires nothing.
    pub fn check(&mut self, schema: Doc<'a>, doc: Doc<'a>) -> Outcome {
        self.work.add(200)?;
        if schema.kind() != DocKind::Object {
            return Ok(None);
        }
        if let Some(reference) = reference_of(schema)? {
            let Some((target, steps)) = resolve(self.root, reference)? else {
                return Ok(None);
            };
            let own = std::mem::replace(&mut self.schema_steps, steps);
            let outcome = self.check(target, doc);
            self.schema_steps = own;
            return outcome;
        }
        require!(self.unless(has_type(schema, doc)?, "type"));
        match doc.kind() {
            DocKind::Object => require!(self.object(schema, doc)),
            DocKind::Array => require!(self.array(schema, doc)),
            DocKind::Scalar => require!(self.scalar(schema, doc)),
        }
        self.combinations(schema, doc)
    }

    /// Tests a value inside the value at hand by a schema inside the schema at hand.
    fn check_inside(
        &mut self,
        schema: Doc<'a>,
        schema_steps: &[Step<'a>],
        doc: Doc<'a>,
        doc_step: Option<Step<'a>>,
    ) -> Outcome {
        let (schemas, docs) = (self.schema_steps.len(), self.doc_steps.len());
        self.schema_steps.extend_from_slice(schema_steps);
        self.doc_steps.extend(doc_step);
        let outcome = self.check(schema, doc);
        self.schema_steps.truncate(schemas);
        self.doc_steps.truncate(docs);
        outcome
    }

    fn object(&mut self, schema: Doc<'a>, doc: Doc<'a>) -> Outcome {
        for member in doc.members()? {
            let (name, value) = member?;
            require!(self.member(schema, name, value));
        }
        let mut complete = true;
        for name in elements_of(schema, "required")? {
            if let Some(Scalar::String(name)) = name?.scalar()? {
                complete &= doc.member(name)?.is_some();
            }
        }
        require!(self.unless(complete, "required"));
        let count = doc.length()?;
        require!(self.at_least(schema, "minProperties", count));
        require!(self.at_most(schema, "maxProperties", count));
        self.dependencies(schema, doc)
    }

    fn member(&mut self, schema: Doc<'a>, name: &'a str, value: Doc<'a>) -> Outcome {
        let step = Some(Step::Name(name));
        let mut known = false;
        if let Some(patterns) = schema.member("patternProperties")? {
            for member in patterns.members()? {
                let (pattern, inner) = member?;
                if !(self.matches)(pattern, name)? {
                    continue;
                }
                known = true;
                let steps = [Step::Name("patternProperties"), Step::Name(pattern)];
                if self.check_inside(inner, &steps, value, step)?.is_some() {
                    self.doc_steps.extend(step);
                    let failure = self.failure("patternProperties");
                    self.doc_steps.pop();
                    return failure;
                }
            }
        }
        if let Some(properties) = schema.member("properties")?
            && let Some(inner) = properties.member(name)?
        {
            let steps = [Step::Name("properties"), Step::Name(name)];
            return self.check_inside(inner, &steps, value, step);
        }
        let Some(more) = schema.member("additionalProperties")? else {
            return Ok(None);
        };
        if matches!(more.scalar()?, Some(Scalar::Bool(false))) && !known {
            self.doc_steps.extend(step);
            let failure = self.failure("additionalProperties");
            self.doc_steps.pop();
            return failure;
        }
        self.check_inside(more, &[Step::Name("additionalProperties")], value, step)
    }

    fn dependencies(&mut self, schema: Doc<'a>, doc: Doc<'a>) -> Outcome {
        let Some(dependencies) = schema.member("dependencies")? else {
            return Ok(None);
        };
        for member in dependencies.members()? {
            let (name, needed) = member?;
            if doc.member(name)?.is_none() {
                continue;
            }
            for other in needed.elements()? {
                if let Some(Scalar::String(other)) = other?.scalar()?
                    && doc.member(other)?.is_none()
                {
                    return self.failure("dependencies");
                }
            }
            if self.check_inside(needed, &[], doc, None)?.is_some() {
                return self.failure("dependencies");
            }
        }
        Ok(None)
    }

    fn array(&mut self, schema: Doc<'a>, doc: Doc<'a>) -> Outcome {
        let items = schema.member("items")?;
        let unique = schema.member("uniqueItems")?;
        let unique = match unique {
            Some(unique) => matches!(unique.scalar()?, Some(Scalar::Bool(true))),
            None => false,
        };
        for (place, element) in doc.elements()?.enumerate() {
            let element = element?;
            if let Some(items) = items {
                require!(self.element(schema, items, place, element));
            }
            if unique && self.is_repeated(doc, place, element)? {
                self.doc_steps.push(Step::Place(place));
                let failure = self.failure("uniqueItems");
                self.doc_steps.pop();
                return failure;
            }
        }
        let count = doc.length()?;
        require!(self.at_least(schema, "minItems", count));
        self.at_most(schema, "maxItems", count)
    }

    fn element(
        &mut self,
        schema: Doc<'a>,
        items: Doc<'a>,
        place: usize,
        element: Doc<'a>,
    ) -> Outcome {
        let step = Some(Step::Place(place));
        if items.kind() != DocKind::Array {
            return self.check_inside(items, &[Step::Name("items")], element, step);
        }
        if let Some(inner) = items.element(place)? {
            let steps = [Step::Name("items"), Step::Place(place)];
            return self.check_inside(inner, &steps, element, step);
        }
        let Some(more) = schema.member("additionalItems")? else {
            return Ok(None);
        };
        if matches!(more.scalar()?, Some(Scalar::Bool(false))) {
            self.doc_steps.extend(step);
            let failure = self.failure("additionalItems");
            self.doc_steps.pop();
            return failure;
        }
        self.check_inside(more, &[Step::Name("additionalItems")], element, step)
    }

    fn is_repeated(&self, doc: Doc<'a>, place: usize, element: Doc<'a>) -> Result<bool, SqlError> {
        for earlier in doc.elements()?.take(place) {
            if compare(earlier?, element, self.work)? == Ordering::Equal {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn scalar(&mut self, schema: Doc<'a>, doc: Doc<'a>) -> Outcome {
        match doc.scalar()? {
            None | Some(Scalar::Null | Scalar::Bool(_)) => Ok(None),
            Some(Scalar::Int(_) | Scalar::UInt(_) | Scalar::Double(_) | Scalar::Decimal(_)) => {
                self.number(schema, doc)
            }
            Some(_) => self.text(schema, doc),
        }
    }

    fn number(&self, schema: Doc<'a>, doc: Doc<'a>) -> Outcome {
        for (keyword, exclusive, beyond) in [
            ("minimum", "exclusiveMinimum", Ordering::Less),
            ("maximum", "exclusiveMaximum", Ordering::Greater),
        ] {
            let Some(bound) = schema.member(keyword)?.filter(|bound| is_number(*bound)) else {
                continue;
            };
            let exclusive = match schema.member(exclusive)? {
                Some(exclusive) => matches!(exclusive.scalar()?, Some(Scalar::Bool(true))),
                None => false,
            };
            let order = compare(doc, bound, self.work)?;
            let valid = order != beyond && !(exclusive && order == Ordering::Equal);
            require!(self.unless(valid, keyword));
        }
        let divisor = schema.member("multipleOf")?;
        match divisor
            .map(|divisor| divisor.scalar())
            .transpose()?
            .flatten()
        {
            Some(divisor) => self.unless(is_multiple(doc.scalar()?, divisor), "multipleOf"),
            None => Ok(None),
        }
    }

    fn text(&mut self, schema: Doc<'a>, doc: Doc<'a>) -> Outcome {
        let mut text = Vec::new();
        print_unquoted(doc, self.work, &mut text)?;
        let text = String::from_utf8_lossy(&text);
        let count = text.chars().count();
        require!(self.at_least(schema, "minLength", count));
        require!(self.at_most(schema, "maxLength", count));
        if let Some(pattern) = schema.member("pattern")?
            && let Some(Scalar::String(pattern)) = pattern.scalar()?
        {
            let valid = (self.matches)(pattern, &text)?;
            return self.unless(valid, "pattern");
        }
        Ok(None)
    }

    fn at_least(&self, schema: Doc<'a>, keyword: &'static str, count: usize) -> Outcome {
        let bound = unsigned(schema, keyword)?;
        self.unless(bound.is_none_or(|bound| count as u64 >= bound), keyword)
    }

    fn at_most(&self, schema: Doc<'a>, keyword: &'static str, count: usize) -> Outcome {
        let bound = unsigned(schema, keyword)?;
        self.unless(bound.is_none_or(|bound| count as u64 <= bound), keyword)
    }

    /// `enum`, and the schemas that are combined.
    fn combinations(&mut self, schema: Doc<'a>, doc: Doc<'a>) -> Outcome {
        let (mut listed, mut found) = (false, false);
        for member in elements_of(schema, "enum")? {
            listed = true;
            found = found || compare(member?, doc, self.work)? == Ordering::Equal;
        }
        require!(self.unless(!listed || found, "enum"));
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let (mut all, mut valid) = (0, 0);
            for inner in elements_of(schema, keyword)? {
                let steps = [Step::Name(keyword), Step::Place(all)];
                all += 1;
                let failure = self.check_inside(inner?, &steps, doc, None)?;
                valid += usize::from(failure.is_none());
            }
            let enough = match keyword {
                "allOf" => valid == all,
                "anyOf" => valid > 0,
                _ => valid == 1,
            };
            require!(self.unless(all == 0 || enough, keyword));
        }
        let Some(inner) = schema.member("not")? else {
            return Ok(None);
        };
        if inner.kind() != DocKind::Object {
            return Ok(None);
        }
        let failure = self.check_inside(inner, &[Step::Name("not")], doc, None)?;
        self.unless(failure.is_some(), "not")
    }
}

/// The elements of an array in a schema; none where it is no array.
fn elements_of<'a>(
    schema: Doc<'a>,
    keyword: &str,
) -> Result<impl Iterator<Item = Result<Doc<'a>, SqlError>> + use<'a>, SqlError> {
    let list = schema.member(keyword)?;
    Ok(list
        .map(|list| list.elements())
        .transpose()?
        .into_iter()
        .flatten())
}

fn unsigned(schema: Doc<'_>, keyword: &str) -> Result<Option<u64>, SqlError> {
    let Some(bound) = schema.member(keyword)? else {
        return Ok(None);
    };
    Ok(match bound.scalar()? {
        Some(Scalar::UInt(bound)) => Some(bound),
        Some(Scalar::Int(bound)) => u64::try_from(bound).ok(),
        _ => None,
    })
}

fn is_number(value: Doc<'_>) -> bool {
    use Scalar::{Decimal, Double, Int, UInt};
    let scalar = value.scalar();
    matches!(scalar, Ok(Some(Int(_) | UInt(_) | Double(_) | Decimal(_))))
}

/// Whether a value has a type that `type` lists.
fn has_type(schema: Doc<'_>, doc: Doc<'_>) -> Result<bool, SqlError> {
    let Some(types) = schema.member("type")? else {
        return Ok(true);
    };
    let is = |name: Doc<'_>| match name.scalar()? {
        Some(Scalar::String(name)) => is_of_type(name, doc),
        _ => Ok(false),
    };
    match types.kind() {
        DocKind::Array => {
            for name in types.elements()? {
                if is(name?)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        DocKind::Object => Ok(true),
        DocKind::Scalar => is(types),
    }
}

fn is_of_type(name: &str, doc: Doc<'_>) -> Result<bool, SqlError> {
    Ok(match doc.scalar()? {
        None => match doc.kind() {
            DocKind::Object => name == "object",
            _ => name == "array",
        },
        Some(Scalar::Null) => name == "null",
        Some(Scalar::Bool(_)) => name == "boolean",
        Some(Scalar::Int(_) | Scalar::UInt(_)) => name == "integer" || name == "number",
        Some(Scalar::Double(_) | Scalar::Decimal(_)) => name == "number",
        Some(_) => name == "string",
    })
}

/// Whether a number is a multiple of another; of doubles, as near as they can be.
fn is_multiple(number: Option<Scalar<'_>>, divisor: Scalar<'_>) -> bool {
    let integer = |scalar: &Scalar<'_>| match scalar {
        Scalar::Int(v) => Some(i128::from(*v)),
        Scalar::UInt(v) => Some(i128::from(*v)),
        _ => None,
    };
    let double = |scalar: &Scalar<'_>| match scalar {
        Scalar::Int(v) => Some(*v as f64),
        Scalar::UInt(v) => Some(*v as f64),
        Scalar::Double(v) => Some(*v),
        Scalar::Decimal(v) => Some(v.to_f64()),
        _ => None,
    };
    let Some(number) = number else {
        return true;
    };
    if let (Some(number), Some(divisor)) = (integer(&number), integer(&divisor)) {
        return divisor <= 0 || number % divisor == 0;
    }
    let (Some(number), Some(divisor)) = (double(&number), double(&divisor)) else {
        return true;
    };
    if divisor <= 0.0 {
        return true;
    }
    let quotient = number.abs() / divisor;
    let rounded = (quotient + 0.5).floor();
    (rounded - quotient).abs() <= (quotient + rounded) * f64::EPSILON
}
