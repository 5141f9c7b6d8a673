//! Prints C++ expressions with as few parentheses as precedence allows.
//!
//! A few additional pairs help readers: around a product, quotient or remainder on the left of `%`,
//! as in `(i / 16) % 2`, and around an operation on the right of a shift.

use super::ast::{Binary, Expr, Pointer, Type, Unary};
use pretty::{Arena, DocAllocator, DocBuilder};

/// A document of the pretty printer.
pub(super) type Doc<'a> = DocBuilder<'a, Arena<'a>>;

/// The binding strength of the outermost operator of an expression; larger values bind more tightly
/// (C++20, table of operator precedence).
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Any expression.
    Any,
    Choose,
    Or,
    And,
    Equality,
    Relation,
    Shift,
    Sum,
    Product,
    Prefix,
    Postfix,
}

pub(super) fn level(e: &Expr) -> Level {
    match e {
        Expr::Int(v) if *v < 0 => Level::Prefix,
        Expr::Literal(text) if text.starts_with('-') => Level::Prefix,
        Expr::Name(_) | Expr::Int(_) | Expr::Literal(_) => Level::Postfix,
        Expr::Call(..) | Expr::Index(..) | Expr::Reinterpret(..) => Level::Postfix,
        Expr::Unary(..) | Expr::Cast(..) => Level::Prefix,
        Expr::Binary(op, ..) => operator(*op).1,
        Expr::Choose(..) => Level::Choose,
    }
}

fn operator(op: Binary) -> (&'static str, Level) {
    match op {
        Binary::Mul => ("*", Level::Product),
        Binary::Div => ("/", Level::Product),
        Binary::Rem => ("%", Level::Product),
        Binary::Add => ("+", Level::Sum),
        Binary::Sub => ("-", Level::Sum),
        Binary::Shl => ("<<", Level::Shift),
        Binary::Lt => ("<", Level::Relation),
        Binary::Le => ("<=", Level::Relation),
        Binary::Gt => (">", Level::Relation),
        Binary::Ge => (">=", Level::Relation),
        Binary::Eq => ("==", Level::Equality),
        Binary::Ne => ("!=", Level::Equality),
        Binary::And => ("&&", Level::And),
        Binary::Or => ("||", Level::Or),
    }
}

/// Prints an expression. Operators that bind less tightly than `at` get parentheses.
pub(super) fn expr<'a>(a: &'a Arena<'a>, e: &Expr, at: Level) -> Doc<'a> {
    let doc = bare(a, e);
    if level(e) < at { a.text("(").append(doc).append(")") } else { doc }
}

fn bare<'a>(a: &'a Arena<'a>, e: &Expr) -> Doc<'a> {
    match e {
        Expr::Name(name) => a.text(name.to_string()),
        Expr::Int(v) => a.text(integer(*v)),
        Expr::Literal(text) => a.text(text.clone()),
        Expr::Call(f, args) => a.text(f.to_string()).append(list(a, "(", args, ")")),
        Expr::Index(base, i) => {
            expr(a, base, Level::Postfix).append("[").append(broken(a, i)).append("]")
        }
        Expr::Unary(op, e) => {
            let sign = match op {
                Unary::Neg => "-",
                Unary::Deref => "*",
                Unary::Address => "&",
            };
            // `- -1` must not become `--1`.
            let at = if *op == Unary::Neg { Level::Postfix } else { Level::Prefix };
            a.text(sign).append(expr(a, e, at))
        }
        Expr::Cast(ty, e) => {
            a.text(format!("({})", type_text(ty))).append(expr(a, e, Level::Prefix))
        }
        Expr::Reinterpret(ty, e) => {
            a.text(format!("reinterpret_cast<{}>(", type_text(ty))).append(broken(a, e)).append(")")
        }
        Expr::Choose(cond, a_value, b_value) => expr(a, cond, Level::And)
            .append(" ? ")
            .append(expr(a, a_value, Level::And))
            .append(" : ")
            .append(expr(a, b_value, Level::And)),
        Expr::Binary(op, left, right) => {
            let (sign, at) = operator(*op);
            let remainder = *op == Binary::Rem && level(left) == Level::Product;
            let left = expr(a, left, if remainder { Level::Prefix } else { at });
            // Operators of one level associate to the left. A sum on the right of a shift gets
            // parentheses.
            let right =
                expr(a, right, if at == Level::Shift { Level::Prefix } else { tighter(at) });
            // Products are not broken; sums and conditions are filled line by line.
            let space = if at == Level::Product { a.text(" ") } else { a.softline() };
            left.append(" ").append(sign).append(space).append(right)
        }
    }
}

/// An expression in brackets, with hanging further lines.
fn broken<'a>(a: &'a Arena<'a>, e: &Expr) -> Doc<'a> {
    expr(a, e, Level::Any).nest(4)
}

/// Expressions in brackets, separated by commas.
pub(super) fn list<'a>(
    a: &'a Arena<'a>,
    open: &'static str,
    items: &[Expr],
    close: &'static str,
) -> Doc<'a> {
    let items = items.iter().map(|e| expr(a, e, Level::Any));
    a.text(open).append(separated(a, items).nest(4)).append(close)
}

/// Items separated by commas. An item that does not fit moves to the next line before it is broken.
pub(super) fn separated<'a>(a: &'a Arena<'a>, items: impl IntoIterator<Item = Doc<'a>>) -> Doc<'a> {
    let mut doc = a.nil();
    for (i, item) in items.into_iter().enumerate() {
        doc = match i {
            0 => doc.append(item.group()),
            _ => doc.append(",").append(a.line().append(item.group()).group()),
        };
    }
    doc
}

fn tighter(level: Level) -> Level {
    match level {
        Level::Any => Level::Choose,
        Level::Choose => Level::Or,
        Level::Or => Level::And,
        Level::And => Level::Equality,
        Level::Equality => Level::Relation,
        Level::Relation => Level::Shift,
        Level::Shift => Level::Sum,
        Level::Sum => Level::Product,
        Level::Product => Level::Prefix,
        Level::Prefix | Level::Postfix => Level::Postfix,
    }
}

fn integer(v: i64) -> String {
    if i32::try_from(v).is_ok() && v != i64::from(i32::MIN) {
        v.to_string()
    } else if v == i64::MIN {
        // The literal without its sign would not fit 64 bits.
        "(-9223372036854775807LL - 1)".to_owned()
    } else {
        format!("{v}LL")
    }
}

/// `const __half* __restrict__`
pub(super) fn type_text(ty: &Type) -> String {
    let name = if ty.is_const { format!("const {}", ty.name) } else { ty.name.to_string() };
    match ty.pointer {
        Pointer::None => name,
        Pointer::Plain => format!("{name}*"),
        Pointer::Restrict => format!("{name}* __restrict__"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Binary::{Add, And, Div, Lt, Mul, Rem, Sub};

    fn show(e: &Expr) -> String {
        let a = Arena::new();
        let doc = expr(&a, e, Level::Any).group();
        doc.pretty(100).to_string()
    }

    fn n(name: &'static str) -> Expr {
        Expr::name(name)
    }

    #[test]
    fn parentheses_follow_precedence() {
        let sum = || n("a").binary(Add, n("b"));
        let check = |e: Expr, want: &str| assert_eq!(show(&e), want);
        check(sum().binary(Mul, n("c")), "(a + b) * c");
        check(sum().binary(Add, n("c")), "a + b + c");
        check(n("c").binary(Sub, sum()), "c - (a + b)");
        check(n("c").binary(Sub, n("a").binary(Mul, n("b"))), "c - a * b");
        check(n("c").binary(Div, n("a").binary(Mul, n("b"))), "c / (a * b)");
        check(n("t").binary(Div, Expr::Int(16)).binary(Rem, Expr::Int(2)), "(t / 16) % 2");
        check(n("t").binary(Rem, Expr::Int(2)).binary(Mul, Expr::Int(8)), "t % 2 * 8");
        check(
            sum().binary(Lt, n("c")).binary(And, n("d").binary(Lt, n("e"))),
            "a + b < c && d < e",
        );
        check(Expr::Unary(Unary::Neg, Box::new(Expr::Int(-1))), "-(-1)");
        check(n("a").binary(Sub, Expr::Int(-1)), "a - -1");
        check(n("p").deref().at(Expr::Int(0)), "(*p)[0]");
        check(n("p").at(Expr::Int(0)).address(), "&p[0]");
        check(Expr::Cast(Type::named("long long"), Box::new(sum())), "(long long)(a + b)");
    }

    #[test]
    fn integers_beyond_32_bits_say_so() {
        assert_eq!(show(&Expr::Int(i64::from(i32::MAX))), "2147483647");
        assert_eq!(show(&Expr::Int(1 << 31)), "2147483648LL");
        assert_eq!(show(&Expr::Int(i64::from(i32::MIN))), "-2147483648LL");
        assert_eq!(show(&Expr::Int(i64::MIN)), "(-9223372036854775807LL - 1)");
    }
}
