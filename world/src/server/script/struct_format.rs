//! The formats of the library `struct`: `>I7I5` and the like.

/// The largest integer, in bytes.
const LARGEST: usize = 32;
const LARGEST_ALIGNMENT: usize = 8;

/// What comes next in a format.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Item {
    pub(crate) kind: Kind,
    /// How many bytes it takes, as far as the format says.
    pub(crate) size: usize,
    pub(crate) is_big_endian: bool,
    /// The bytes that are left out before it.
    pub(crate) padding: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Unsigned,
    Signed,
    Float,
    Double,
    /// Bytes.
    Text,
    /// Bytes, and a zero behind them.
    Terminated,
    Skipped,
}

/// What is wrong with a format.
pub(crate) enum Mistake {
    /// There is no such option.
    Option(u8),
    Number(String),
}

/// A format that is being read.
pub(crate) struct Format<'a> {
    rest: &'a [u8],
    is_big_endian: bool,
    alignment: usize,
}

impl<'a> Format<'a> {
    pub(crate) fn new(format: &'a [u8]) -> Self {
        Self { rest: format, is_big_endian: false, alignment: 1 }
    }

    /// Returns the next item, which begins at that place of the data; what is wrong with the format, if it is.
    pub(crate) fn next(&mut self, at: usize) -> Option<Result<Item, Mistake>> {
        loop {
            let (option, rest) = self.rest.split_first()?;
            self.rest = rest;
            match self.item(*option, at) {
                Ok(Some(item)) => return Some(Ok(item)),
                Ok(None) => {}
                Err(mistake) => return Some(Err(mistake)),
            }
        }
    }

    /// Reads an option; `None` for one that is about the others.
    fn item(&mut self, option: u8, at: usize) -> Result<Option<Item>, Mistake> {
        let (kind, size) = match option {
            b'b' => (Kind::Signed, 1),
            b'B' => (Kind::Unsigned, 1),
            b'h' => (Kind::Signed, 2),
            b'H' => (Kind::Unsigned, 2),
            b'l' => (Kind::Signed, 8),
            b'L' | b'T' => (Kind::Unsigned, 8),
            b'i' => (Kind::Signed, self.integer_size()?),
            b'I' => (Kind::Unsigned, self.integer_size()?),
            b'f' => (Kind::Float, 4),
            b'd' => (Kind::Double, 8),
            b'c' => (Kind::Text, self.number(1)?),
            b's' => (Kind::Terminated, 0),
            b'x' => (Kind::Skipped, 1),
            _ => {
                self.control(option)?;
                return Ok(None);
            }
        };
        let padding = if kind == Kind::Text || size == 0 { 0 } else { padding(at, size.min(self.alignment)) };
        Ok(Some(Item { kind, size, is_big_endian: self.is_big_endian, padding }))
    }

    fn control(&mut self, option: u8) -> Result<(), Mistake> {
        match option {
            b' ' => {}
            b'>' => self.is_big_endian = true,
            b'<' => self.is_big_endian = false,
            b'!' => {
                let alignment = self.number(LARGEST_ALIGNMENT)?;
                if !alignment.is_power_of_two() {
                    return Err(Mistake::Number(format!("alignment {alignment} is not a power of 2")));
                }
                self.alignment = alignment;
            }
            _ => return Err(Mistake::Option(option)),
        }
        Ok(())
    }

    fn integer_size(&mut self) -> Result<usize, Mistake> {
        let size = self.number(4)?;
        if size > LARGEST {
            return Err(Mistake::Number(format!("integral size {size} is larger than limit of {LARGEST}")));
        }
        Ok(size)
    }

    /// Reads the number behind an option, if there is one.
    fn number(&mut self, default: usize) -> Result<usize, Mistake> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        if number.is_empty() {
            return Ok(default);
        }
        let number = String::from_utf8_lossy(number).parse::<i32>().ok();
        number
            .and_then(|number| number.try_into().ok())
            .ok_or_else(|| Mistake::Number("integral size overflow".to_owned()))
    }
}

fn padding(at: usize, size: usize) -> usize {
    (size - (at & (size - 1))) & (size - 1)
}
