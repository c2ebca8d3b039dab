//! HammingMesh: boards of accelerators in a grid, whose rows and columns end at switches.

use crate::draft::TopologyDraft;
use crate::generate::arguments::{Arguments, count, value_error};
use crate::generate::boxes::{add_gpus, gpu};
use crate::generate::catalogue::two_sizes;
use crate::generate::error::ExpressionError;
use crate::generate::size::{Size, product, sum};
use crate::limits::TopologyLimits;
use crate::units::{Capacity, Latency};

/// Rate of a link where nothing is said: 400 Gbps.
const RATE: u64 = 50_000_000_000;

/// Sizes in rows and columns.
#[derive(Clone, Copy)]
struct Grid {
    rows: usize,
    columns: usize,
}

/// `hamming-mesh:4x8,board=2x2`: four rows of eight boards, each of which is a mesh of accelerators in two rows and two
/// columns. Every row of accelerators ends at both sides of a board, and both ends on all boards of this row are joined
/// by one switch, which stands for a tree that blocks nowhere; columns likewise. Accelerator `a` of board `b` is
/// `b{b}g{a}`, ranked board by board, and boards count as boxes.
///
/// On boards of one column, both ends of a row are one accelerator, with two links to the switch. Lines of one
/// accelerator have no switch.
///
/// Source: Hoefler et al., "HammingMesh: a network topology for large-scale deep learning", SC 2022, §III.
pub(super) fn hamming_mesh(
    arguments: &Arguments<'_>,
    limits: &TopologyLimits,
) -> Result<TopologyDraft, ExpressionError> {
    let narrow = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
    let [rows, columns] = two_sizes(arguments)?.map(narrow);
    let (boards, board) = (Grid { rows, columns }, board(arguments)?);
    let row = Line { boards: columns, length: board.columns };
    let column = Line { boards: rows, length: board.rows };
    let (row_count, column_count) = (product(&[rows, board.rows]), product(&[columns, board.columns]));
    let all_boards = product(&[rows, columns]);
    let on_a_board = sum(&[product(&[board.rows, board.columns - 1]), product(&[board.columns, board.rows - 1])]);
    let switches =
        sum(&[if row.has_switch() { row_count } else { 0 }, if column.has_switch() { column_count } else { 0 }]);
    let pairs = sum(&[
        all_boards.saturating_mul(on_a_board),
        row_count.saturating_mul(row.links()),
        column_count.saturating_mul(column.links()),
    ]);
    let ranks = product(&[rows, columns, board.rows, board.columns]);
    Size { ranks, switches, links: pairs.saturating_mul(2) }.check(limits)?;
    Ok(built(boards, board, arguments.rate("bw", RATE)?))
}

/// The accelerators of one row or column of the network.
#[derive(Clone, Copy)]
struct Line {
    boards: usize,
    /// Accelerators on each board.
    length: usize,
}

impl Line {
    const fn has_switch(self) -> bool {
        self.boards > 1 || self.length > 1
    }

    /// Links to its switch; two of one accelerator are merged.
    fn links(self) -> u128 {
        if self.has_switch() { product(&[self.boards, self.length.min(2)]) } else { 0 }
    }

    /// Positions on a board from which links lead to the switch.
    const fn ends(self) -> [usize; 2] {
        [0, self.length - 1]
    }
}

/// `board=2x2`, the default.
fn board(arguments: &Arguments<'_>) -> Result<Grid, ExpressionError> {
    let Some(argument) = arguments.find("board") else { return Ok(Grid { rows: 2, columns: 2 }) };
    let sizes: Vec<usize> = argument.value.split('x').map(|size| count(argument, size)).collect::<Result<_, _>>()?;
    match sizes.as_slice() {
        &[rows, columns] => Ok(Grid { rows, columns }),
        _ => Err(value_error(argument, "two sizes such as `2x2`")),
    }
}

fn built(boards: Grid, board: Grid, bandwidth: Capacity) -> TopologyDraft {
    let mut draft = TopologyDraft::default();
    add_gpus(&mut draft, boards.rows * boards.columns, board.rows * board.columns);
    // An accelerator by its row and column in the whole network.
    let at = |row: usize, column: usize| {
        let of_board = row / board.rows * boards.columns + column / board.columns;
        gpu(of_board, row % board.rows * board.columns + column % board.columns)
    };
    let directions = [
        ("row", boards.rows * board.rows, Line { boards: boards.columns, length: board.columns }),
        ("col", boards.columns * board.columns, Line { boards: boards.rows, length: board.rows }),
    ];
    for (name, lines, line) in directions.into_iter().filter(|(.., line)| line.has_switch()) {
        let on = |number: usize, place: usize| if name == "row" { at(number, place) } else { at(place, number) };
        for number in 0..lines {
            let switch = format!("{name}{number}");
            draft.add_switch(switch.as_str());
            for first in (0..line.boards).map(|of_line| of_line * line.length) {
                for place in first..first + line.length - 1 {
                    draft.add_both(&on(number, place), &on(number, place + 1), bandwidth, Latency::default());
                }
                for end in line.ends() {
                    draft.add_both(&on(number, first + end), &switch, bandwidth, Latency::default());
                }
            }
        }
    }
    draft
}
