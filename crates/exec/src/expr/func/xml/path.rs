//! Parses XPath as MySQL does: a part of XPath 1.0, with a few functions. Node tests such as
//! `text()` are accepted and select nothing of their own; unknown axes count as `child`.

use nfold_types::convert::number;
use nfold_types::{Charset, ErrorCode, SqlError};

/// An expression that selects nodes.
#[derive(Debug)]
pub(super) enum Nodes {
    Root,
    /// The node that a predicate is tested for.
    Context,
    Step {
        from: Box<Nodes>,
        axis: Axis,
        /// `None`: nodes with any name.
        name: Option<Vec<u8>>,
    },
    /// The nodes for which a condition holds.
    Where(Box<Nodes>, Box<Term>),
    /// The node at a position among those of its parent.
    At(Box<Nodes>, Box<Term>),
    Union(Box<Nodes>, Box<Nodes>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Axis {
    Child,
    Attribute,
    SelfNode,
    Parent,
    Ancestor,
    AncestorOrSelf,
    Descendant,
    DescendantOrSelf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arith {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug)]
pub(super) enum Term {
    Nodes(Nodes),
    Int(i64),
    /// With the number of its decimals.
    Real(f64, u8),
    Text(Vec<u8>),
    /// A user variable, in lower case.
    Variable(String),
    Neg(Box<Term>),
    Arith(Arith, Box<[Term; 2]>),
    Compare(Relation, Box<[Term; 2]>),
    And(Box<[Term; 2]>),
    Or(Box<[Term; 2]>),
    Call(Function, Vec<Term>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Boolean,
    Ceiling,
    Concat,
    Contains,
    Count,
    False,
    Floor,
    Last,
    Not,
    Number,
    Position,
    Round,
    StringLength,
    Substring,
    Sum,
    True,
}

/// The functions, with the least and the most number of arguments.
const FUNCTIONS: [(&str, Function, usize, usize); 16] = [
    ("boolean", Function::Boolean, 1, 1),
    ("ceiling", Function::Ceiling, 1, 1),
    ("concat", Function::Concat, 2, 255),
    ("contains", Function::Contains, 2, 2),
    ("count", Function::Count, 1, 1),
    ("false", Function::False, 0, 0),
    ("floor", Function::Floor, 1, 1),
    ("last", Function::Last, 0, 0),
    ("not", Function::Not, 1, 1),
    ("number", Function::Number, 0, 1),
    ("position", Function::Position, 0, 0),
    ("round", Function::Round, 1, 1),
    ("string-length", Function::StringLength, 0, 1),
    ("substring", Function::Substring, 2, 3),
    ("sum", Function::Sum, 1, 1),
    ("true", Function::True, 0, 0),
];

const AXES: [(&str, Axis); 13] = [
    ("ancestor", Axis::Ancestor),
    ("ancestor-or-self", Axis::AncestorOrSelf),
    ("attribute", Axis::Attribute),
    ("child", Axis::Child),
    ("descendant", Axis::Descendant),
    ("descendant-or-self", Axis::DescendantOrSelf),
    // As in MySQL.
    ("following", Axis::Child),
    ("following-sibling", Axis::Child),
    ("namespace", Axis::Child),
    ("parent", Axis::Parent),
    ("preceding", Axis::Child),
    ("preceding-sibling", Axis::Child),
    ("self", Axis::SelfNode),
];

const NODE_TYPES: [&str; 4] = ["comment", "text", "processing-instruction", "node"];

/// Expressions within each other, which the parser reads by recursion.
const DEPTH_MAX: usize = 40;

/// Steps, operators and predicates of a path: the evaluator's recursion may be as deep.
const OPERATIONS_MAX: usize = 100;

/// The bytes of the expression that an error shows.
const SHOWN_BYTES: usize = 32;

impl Term {
    /// Whether the term is a condition rather than a position when it stands in brackets.
    fn is_condition(&self) -> bool {
        use Function::{Boolean, Contains, False, Not, True};
        match self {
            Term::Compare(..) | Term::And(_) | Term::Or(_) | Term::Nodes(_) => true,
            Term::Call(function, _) => {
                matches!(function, Boolean | Contains | False | Not | True)
            }
            _ => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    End,
    Invalid,
    Name,
    And,
    Or,
    Div,
    Mod,
    Function(usize),
    NodeType,
    AxisName(Axis),
    Digits,
    Text,
    Sign(u8),
}

#[derive(Debug, Clone, Copy)]
struct Token {
    kind: TokenKind,
    start: usize,
    end: usize,
}

/// Failures of the parser.
enum Failure {
    /// Another rule may apply.
    None,
    /// No rule can apply: a syntax error at the next token.
    Syntax,
    Other(SqlError),
}

type Parsed<T> = Result<T, Failure>;

struct Parser<'t> {
    text: &'t [u8],
    set: &'static Charset,
    /// The last token that was taken.
    last: Token,
    next: Token,
    /// Whether the parser is inside of brackets, so that there is a context node.
    in_predicate: bool,
    depth: usize,
    operations: usize,
}

/// Parses an expression, in the character set `set`.
///
/// # Errors
/// 1105.
pub(super) fn parse(text: &[u8], set: &'static Charset) -> Result<Term, SqlError> {
    let start = Token {
        kind: TokenKind::End,
        start: 0,
        end: 0,
    };
    let mut parser = Parser {
        text,
        set,
        last: start,
        next: start,
        in_predicate: false,
        depth: 0,
        operations: 0,
    };
    parser.next = parser.scan(0);
    match parser.expression() {
        Ok(term) if parser.next.kind == TokenKind::End => Ok(term),
        Err(Failure::Other(error)) => Err(error),
        _ => Err(parser.error("XPATH syntax error: ", parser.next.start)),
    }
}

fn lookup<T: Copy>(table: &[(&str, T)], name: &[u8]) -> Option<T> {
    let mut table = table.iter();
    let found = table.find(|(n, _)| n.as_bytes().eq_ignore_ascii_case(name));
    found.map(|(_, found)| *found)
}

impl Parser<'_> {
    fn error(&self, message: &str, at: usize) -> SqlError {
        let rest = &self.text[at..];
        let shown = &rest[..rest.len().min(SHOWN_BYTES)];
        let shown = self.set.well_formed_prefix(shown);
        let mut text = Vec::new();
        nfold_types::charset::convert(self.set, &nfold_types::charset::UTF8MB4, shown, &mut text);
        let shown = String::from_utf8_lossy(&text);
        SqlError::with_message(ErrorCode::ER_UNKNOWN_ERROR, format!("{message}'{shown}'"))
    }

    /// The character at a position with its length, if it is a letter or, unless it is the `first`
    /// one of a name, a digit.
    fn name_char(&self, at: usize, first: bool) -> Option<usize> {
        match *self.text.get(at)? {
            b'_' => return Some(1),
            b'-' | b'.' if !first => return Some(1),
            _ => {}
        }
        let (c, len) = self.set.decode(&self.text[at..])?;
        let fits = c.is_alphabetic() || !first && c.is_alphanumeric();
        fits.then_some(len)
    }

    /// Reads the token that begins at or after a position.
    fn scan(&self, at: usize) -> Token {
        let text = self.text;
        let blanks = text[at..].iter().take_while(|b| **b == b' ').count();
        let start = at + blanks;
        let token = |kind, end| Token { kind, start, end };
        let Some(first) = text.get(start).copied() else {
            return token(TokenKind::End, start);
        };
        if b"!$()*+,-./:<=>@[]|".contains(&first) {
            return token(TokenKind::Sign(first), start + 1);
        }
        if let Some(len) = self.name_char(start, true) {
            let mut end = start + len;
            while let Some(len) = self.name_char(end, false) {
                end += len;
            }
            return token(self.name_kind(&text[start..end], end), end);
        }
        if first.is_ascii_digit() {
            let digits = text[start..].iter().take_while(|b| b.is_ascii_digit());
            return token(TokenKind::Digits, start + digits.count());
        }
        if matches!(first, b'"' | b'\'') {
            let len = text[start + 1..].iter().position(|b| *b == first);
            return match len {
                Some(len) => token(TokenKind::Text, start + len + 2),
                None => token(TokenKind::Invalid, text.len()),
            };
        }
        token(TokenKind::Invalid, start + 1)
    }

    /// The kind of a name, which may depend on the characters behind it.
    fn name_kind(&self, name: &[u8], end: usize) -> TokenKind {
        let rest = &self.text[end..];
        if rest.starts_with(b"(") {
            let function =
                |(n, ..): &(&str, Function, usize, usize)| n.as_bytes().eq_ignore_ascii_case(name);
            if let Some(at) = FUNCTIONS.iter().position(function) {
                return TokenKind::Function(at);
            }
            if NODE_TYPES
                .iter()
                .any(|n| n.as_bytes().eq_ignore_ascii_case(name))
            {
                return TokenKind::NodeType;
            }
        }
        if rest.starts_with(b"::")
            && let Some(axis) = lookup(&AXES, name)
        {
            return TokenKind::AxisName(axis);
        }
        let operators = [
            ("and", TokenKind::And),
            ("or", TokenKind::Or),
            ("div", TokenKind::Div),
            ("mod", TokenKind::Mod),
        ];
        lookup(&operators, name).unwrap_or(TokenKind::Name)
    }

    /// Takes the next token if it is of this kind.
    fn take(&mut self, kind: TokenKind) -> bool {
        let found = self.next.kind == kind;
        if found {
            self.last = self.next;
            self.next = self.scan(self.next.end);
        }
        found
    }

    fn sign(&mut self, sign: u8) -> bool {
        self.take(TokenKind::Sign(sign))
    }

    /// # Errors
    /// 1436 for more than [`OPERATIONS_MAX`] operations.
    fn count_operation(&mut self) -> Parsed<()> {
        self.operations += 1;
        match self.operations > OPERATIONS_MAX {
            true => Err(Failure::Other(too_deep())),
            false => Ok(()),
        }
    }

    fn expect(&mut self, sign: u8) -> Parsed<()> {
        match self.sign(sign) {
            true => Ok(()),
            false => Err(Failure::None),
        }
    }

    fn expression(&mut self) -> Parsed<Term> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Failure::Other(too_deep()));
        }
        let mut term = self.and()?;
        while self.take(TokenKind::Or) {
            self.count_operation()?;
            let other = required(self.and())?;
            term = Term::Or(Box::new([term, other]));
        }
        self.depth -= 1;
        Ok(term)
    }

    fn and(&mut self) -> Parsed<Term> {
        let mut term = self.equality()?;
        while self.take(TokenKind::And) {
            self.count_operation()?;
            let other = required(self.equality())?;
            term = Term::And(Box::new([term, other]));
        }
        Ok(term)
    }

    fn equality(&mut self) -> Parsed<Term> {
        let mut term = self.relational()?;
        loop {
            let operator = self.next.start;
            let relation = if self.sign(b'=') {
                Relation::Equal
            } else if self.next.kind == TokenKind::Sign(b'!')
                && self.scan(self.next.end).kind == TokenKind::Sign(b'=')
            {
                self.sign(b'!');
                self.sign(b'=');
                Relation::NotEqual
            } else {
                return Ok(term);
            };
            self.count_operation()?;
            let other = required(self.relational())?;
            term = self.compared(relation, term, other, operator)?;
        }
    }

    fn relational(&mut self) -> Parsed<Term> {
        let mut term = self.additive()?;
        loop {
            let operator = self.next.start;
            let less = match self.next.kind {
                TokenKind::Sign(sign @ (b'<' | b'>')) => sign == b'<',
                _ => return Ok(term),
            };
            self.next_token();
            let relation = match (less, self.sign(b'=')) {
                (true, false) => Relation::Less,
                (true, true) => Relation::LessOrEqual,
                (false, false) => Relation::Greater,
                (false, true) => Relation::GreaterOrEqual,
            };
            self.count_operation()?;
            let other = required(self.additive())?;
            term = self.compared(relation, term, other, operator)?;
        }
    }

    fn next_token(&mut self) {
        self.take(self.next.kind);
    }

    /// # Errors
    /// 1105 if both sides are nodes.
    fn compared(&self, relation: Relation, a: Term, b: Term, at: usize) -> Parsed<Term> {
        if matches!((&a, &b), (Term::Nodes(_), Term::Nodes(_))) {
            let message = "XPATH error: comparison of two nodesets is not supported: ";
            return Err(Failure::Other(self.error(message, at)));
        }
        Ok(Term::Compare(relation, Box::new([a, b])))
    }

    fn additive(&mut self) -> Parsed<Term> {
        let mut term = self.multiplicative()?;
        loop {
            let op = if self.sign(b'+') {
                Arith::Add
            } else if self.sign(b'-') {
                Arith::Sub
            } else {
                return Ok(term);
            };
            self.count_operation()?;
            let other = required(self.multiplicative())?;
            term = Term::Arith(op, Box::new([term, other]));
        }
    }

    fn multiplicative(&mut self) -> Parsed<Term> {
        let mut term = self.unary()?;
        loop {
            let op = if self.sign(b'*') {
                Arith::Mul
            } else if self.take(TokenKind::Div) {
                Arith::Div
            } else if self.take(TokenKind::Mod) {
                Arith::Mod
            } else {
                return Ok(term);
            };
            self.count_operation()?;
            let other = required(self.unary())?;
            term = Term::Arith(op, Box::new([term, other]));
        }
    }

    fn unary(&mut self) -> Parsed<Term> {
        let mut signs = 0;
        while self.sign(b'-') {
            signs += 1;
            self.count_operation()?;
        }
        let mut term = match signs {
            0 => self.union()?,
            _ => required(self.union())?,
        };
        for _ in 0..signs {
            term = Term::Neg(Box::new(term));
        }
        Ok(term)
    }

    fn union(&mut self) -> Parsed<Term> {
        let mut term = self.path()?;
        while self.sign(b'|') {
            self.count_operation()?;
            let Term::Nodes(left) = term else {
                return Err(Failure::Syntax);
            };
            let Term::Nodes(right) = required(self.path())? else {
                return Err(Failure::Syntax);
            };
            term = Term::Nodes(Nodes::Union(Box::new(left), Box::new(right)));
        }
        Ok(term)
    }

    fn path(&mut self) -> Parsed<Term> {
        let start = match self.in_predicate {
            true => Nodes::Context,
            false => Nodes::Root,
        };
        // A rule that fails leaves the tokens that it has taken, as in MySQL.
        for rule in [Self::relative, Self::absolute] {
            match rule(
                self,
                match start {
                    Nodes::Context => Nodes::Context,
                    _ => Nodes::Root,
                },
            ) {
                Ok(nodes) => return Ok(Term::Nodes(nodes)),
                Err(Failure::None) => {}
                Err(failure) => return Err(failure),
            }
        }
        let term = self.primary()?;
        if !self.sign(b'/') {
            return Ok(term);
        }
        let Term::Nodes(mut nodes) = term else {
            self.next = self.last;
            return Err(Failure::Syntax);
        };
        if self.sign(b'/') {
            nodes = step(nodes, Axis::DescendantOrSelf, None);
        }
        Ok(Term::Nodes(required(self.relative(nodes))?))
    }

    fn absolute(&mut self, _: Nodes) -> Parsed<Nodes> {
        self.expect(b'/')?;
        if self.sign(b'/') {
            let all = step(Nodes::Root, Axis::DescendantOrSelf, None);
            return required(self.relative(all));
        }
        match self.relative(Nodes::Root) {
            Err(Failure::None) => Ok(Nodes::Root),
            other => other,
        }
    }

    fn relative(&mut self, from: Nodes) -> Parsed<Nodes> {
        let mut nodes = self.step(from)?;
        self.count_operation()?;
        while self.sign(b'/') {
            self.count_operation()?;
            if self.sign(b'/') {
                nodes = step(nodes, Axis::DescendantOrSelf, None);
            }
            nodes = required(self.step(nodes))?;
        }
        Ok(nodes)
    }

    fn step(&mut self, from: Nodes) -> Parsed<Nodes> {
        if self.next.kind == TokenKind::Sign(b'.') {
            return self.abbreviated(from);
        }
        let axis = match self.next.kind {
            TokenKind::AxisName(axis) => {
                self.next_token();
                self.expect(b':')?;
                self.expect(b':')?;
                axis
            }
            _ => match self.sign(b'@') {
                true => Axis::Attribute,
                false => Axis::Child,
            },
        };
        let mut nodes = match self.name() {
            Ok(Some(name)) => step(from, axis, name),
            // A test of the node's type selects what is selected already.
            Ok(None) => from,
            Err(Failure::None) => return self.abbreviated(from),
            Err(failure) => return Err(failure),
        };
        while self.sign(b'[') {
            nodes = self.predicate(nodes)?;
        }
        Ok(nodes)
    }

    /// `.` or `..`
    fn abbreviated(&mut self, from: Nodes) -> Parsed<Nodes> {
        self.expect(b'.')?;
        Ok(match self.sign(b'.') {
            true => step(from, Axis::Parent, None),
            false => from,
        })
    }

    fn predicate(&mut self, from: Nodes) -> Parsed<Nodes> {
        self.count_operation()?;
        let outer = std::mem::replace(&mut self.in_predicate, true);
        let test = required(self.expression())?;
        self.in_predicate = outer;
        if !self.sign(b']') {
            return Err(Failure::Syntax);
        }
        Ok(match test.is_condition() {
            true => Nodes::Where(Box::new(from), Box::new(test)),
            false => Nodes::At(Box::new(from), Box::new(test)),
        })
    }

    /// A name, `Some(None)` for `*`, or `None` for a test of the node's type.
    fn name(&mut self) -> Parsed<Option<Option<Vec<u8>>>> {
        if self.sign(b'*') {
            return Ok(Some(None));
        }
        if self.take(TokenKind::NodeType) {
            if !self.sign(b'(') || !self.sign(b')') {
                return Err(Failure::None);
            }
            return Ok(None);
        }
        if !self.plain_name() {
            return Err(Failure::None);
        }
        let start = self.last.start;
        if self.sign(b':') && !self.plain_name() {
            return Err(Failure::None);
        }
        Ok(Some(Some(self.text[start..self.last.end].to_vec())))
    }

    fn plain_name(&mut self) -> bool {
        [
            TokenKind::Name,
            TokenKind::And,
            TokenKind::Or,
            TokenKind::Mod,
            TokenKind::Div,
        ]
        .into_iter()
        .any(|kind| self.take(kind))
    }

    fn primary(&mut self) -> Parsed<Term> {
        if self.sign(b'$') {
            let start = self.last.start;
            let of_session = self.sign(b'@');
            if self.take(TokenKind::Name) {
                if !of_session {
                    let message = "Unknown XPATH variable at: ";
                    return Err(Failure::Other(self.error(message, start)));
                }
                let name = &self.text[self.last.start..self.last.end];
                return Ok(Term::Variable(String::from_utf8_lossy(name).to_lowercase()));
            }
        }
        if self.sign(b'(') {
            let inner = required(self.expression())?;
            if !self.sign(b')') {
                return Err(Failure::Syntax);
            }
            return Ok(inner);
        }
        if self.take(TokenKind::Text) {
            let text = &self.text[self.last.start + 1..self.last.end - 1];
            return Ok(Term::Text(text.to_vec()));
        }
        if self.take(TokenKind::Digits) {
            return Ok(self.number());
        }
        match self.next.kind {
            TokenKind::Function(at) => {
                self.next_token();
                self.call(at)
            }
            _ => Err(Failure::None),
        }
    }

    /// A number whose first digits have been taken.
    fn number(&mut self) -> Term {
        let start = self.last.start;
        if !self.sign(b'.') {
            let digits = &self.text[start..self.last.end];
            let value = number::parse_integer(digits).value;
            // As in MySQL, a number above the range of BIGINT keeps its 64 bits.
            return Term::Int(value.clamp(0, u64::MAX.into()) as u64 as i64);
        }
        let dot = self.last.end;
        self.take(TokenKind::Digits);
        let text = &self.text[start..self.last.end];
        let digits = self.text[dot..self.last.end].iter();
        let decimals = match text.contains(&b' ') {
            true => digits.filter(|b| b.is_ascii_digit()).count().min(1),
            false => digits.count(),
        };
        let value = number::parse_double(text).value;
        Term::Real(value, decimals.min(u8::MAX.into()) as u8)
    }

    fn call(&mut self, at: usize) -> Parsed<Term> {
        let (_, function, least, most) = FUNCTIONS[at];
        self.expect(b'(')?;
        let mut args = Vec::new();
        while args.len() < most {
            match self.expression() {
                Ok(arg) => args.push(arg),
                Err(Failure::None) if args.len() >= least => break,
                Err(failure) => return Err(failure),
            }
            if !self.sign(b',') {
                break;
            }
        }
        if args.len() < least || !self.sign(b')') {
            return Err(Failure::None);
        }
        let nodes = matches!(args.first(), Some(Term::Nodes(_)));
        match function {
            Function::Count | Function::Sum if !nodes => return Err(Failure::None),
            Function::Last | Function::Position | Function::StringLength
                if args.is_empty() && !self.in_predicate =>
            {
                return Err(Failure::None);
            }
            Function::Number | Function::StringLength if args.is_empty() => {
                args.push(Term::Nodes(match self.in_predicate {
                    true => Nodes::Context,
                    false => Nodes::Root,
                }));
            }
            // As in MySQL.
            Function::Concat => args.truncate(2),
            _ => {}
        }
        Ok(Term::Call(function, args))
    }
}

fn step(from: Nodes, axis: Axis, name: Option<Vec<u8>>) -> Nodes {
    Nodes::Step {
        from: Box::new(from),
        axis,
        name,
    }
}

fn too_deep() -> SqlError {
    let message = format!(
        "Thread stack overrun: an XPath has at most {OPERATIONS_MAX} steps and operators, and \
         {DEPTH_MAX} expressions within each other."
    );
    SqlError::with_message(ErrorCode::ER_STACK_OVERRUN_NEED_MORE, message)
}

/// The result of a rule without which no other can succeed.
fn required<T>(parsed: Parsed<T>) -> Parsed<T> {
    parsed.map_err(|failure| match failure {
        Failure::None => Failure::Syntax,
        other => other,
    })
}
