//! The pictures of a record.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::Result;
use crate::commands::Row;
use crate::settings::Settings;

/// Ours, then the peer: both to be told apart without colours by their lightness.
const COLORS: [RGBColor; 2] = [RGBColor(0, 90, 156), RGBColor(240, 150, 60)];
/// The floor, and what only helps to read.
const GREY: RGBColor = RGBColor(110, 110, 110);
/// Pixels: width of the text left of the bars and of one group of bars; height of one bar; what stands above and below.
const LABELS: u32 = 204;
const GROUP: u32 = 235;
const BAR: u32 = 15;
const ABOVE: u32 = 84;
const BELOW: u32 = 34;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn text(size: u32, color: &'static RGBColor, across: HPos) -> TextStyle<'static> {
    // plotters writes a size divided by 1.24 into the file.
    let style = TextStyle::from(("sans-serif", f64::from(size) * 1.24).into_font()).color(color);
    style.pos(Pos::new(across, VPos::Center))
}

/// Time over the floor for each workload, a group of bars for each filter, side by side.
pub fn bars(file: &Path, settings: &Settings, groups: &[(String, Vec<Row>)]) -> Result<()> {
    let names: Vec<&str> = settings.filter_sides().iter().map(|side| side.name).collect();
    let Some((_, first)) = groups.first() else { return Ok(()) };
    let step = BAR * names.len() as u32 + 12;
    let height = step * first.len() as u32;
    let width = LABELS + GROUP * groups.len() as u32;
    let root = SVGBackend::new(file, (width, ABOVE + height + BELOW)).into_drawing_area();
    root.fill(&WHITE)?;
    root.draw_text(
        "Server processor time an item, times that of a command that does nothing",
        &text(16, &BLACK, HPos::Left),
        (8, 16),
    )?;
    for (place, (name, color)) in (0..).zip(names.iter().zip(COLORS)) {
        let left = LABELS as i32 + 120 * place;
        root.draw(&Rectangle::new([(left, 34), (left + 14, 48)], color.filled()))?;
        root.draw_text(name, &text(14, &BLACK, HPos::Left), (left + 20, 41))?;
    }
    for (line, row) in (0..).zip(first) {
        let middle = ABOVE + step * line + step / 2;
        root.draw_text(row.label, &text(14, &BLACK, HPos::Right), (LABELS as i32 - 8, middle as i32))?;
    }
    let all = groups.iter().flat_map(|(_, rows)| rows.iter().flat_map(Row::over_floor));
    let most = all.fold(1.0, f64::max);
    let (_, right) = root.split_horizontally(LABELS);
    for ((name, rows), area) in groups.iter().zip(right.split_evenly((1, groups.len()))) {
        // The value stands right of its bar.
        group(&area, name, rows, 0.0..most * 1.25, step)?;
    }
    root.present()?;
    Ok(())
}

/// The bars of one filter.
fn group(area: &Area, name: &str, rows: &[Row], range: std::ops::Range<f64>, step: u32) -> Result<()> {
    area.draw_text(name, &text(13, &BLACK, HPos::Left), (2, ABOVE as i32 - 18))?;
    let height = step * rows.len() as u32;
    let mut chart = ChartBuilder::on(area)
        .margin_top(ABOVE)
        .margin_right(8)
        .margin_left(2)
        .set_label_area_size(LabelAreaPosition::Bottom, BELOW)
        .build_cartesian_2d(range, f64::from(height)..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GREY.mix(0.25))
        .x_labels(6)
        .x_label_formatter(&|value| format!("{value:.0}"))
        .label_style(text(12, &GREY, HPos::Center))
        .draw()?;
    for (line, row) in (0..).zip(rows) {
        for (place, (value, color)) in (0..).zip(row.over_floor().into_iter().zip(COLORS)) {
            let top = f64::from(step * line + 6 + BAR * place);
            let bar = [(0.0, top), (value, top + f64::from(BAR) - 1.0)];
            let label = (value, top + f64::from(BAR) / 2.0);
            chart.draw_series([Rectangle::new(bar, color.filled())])?;
            let shown =
                EmptyElement::at(label) + Text::new(format!("{value:.1}"), (4, 0), text(12, &BLACK, HPos::Left));
            chart.draw_series([shown])?;
        }
    }
    // The floor itself.
    chart.draw_series([PathElement::new([(1.0, 0.0), (1.0, f64::from(height))], GREY.stroke_width(2))])?;
    Ok(())
}

/// A line of a diagram.
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// Items and nanoseconds an item.
    pub points: Vec<(f64, f64)>,
}

/// Cost an item by the number of items; two curves a side, the floor first, absent before present.
pub fn curves(file: &Path, curves: &[Curve]) -> Result<()> {
    let root = SVGBackend::new(file, (900, 460)).into_drawing_area();
    root.fill(&WHITE)?;
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let (least, most) = points().fold((f64::MAX, 0.0), |(least, most), &(x, _)| (x.min(least), x.max(most)));
    let slowest = points().fold(0.0, |slowest, &(_, y)| y.max(slowest));
    let mut chart = ChartBuilder::on(&root)
        .caption("MEXISTS of 500: server processor time, nanoseconds an item", text(16, &BLACK, HPos::Left))
        .margin(12)
        .margin_right(32)
        .x_label_area_size(44)
        .y_label_area_size(52)
        .build_cartesian_2d((least..most).log_scale(), 0.0..slowest * 1.25)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GREY.mix(0.25))
        .x_desc("items in the filter")
        .y_label_formatter(&|value| format!("{value:.0}"))
        .x_label_formatter(&|value| crate::report::count(*value as u64))
        .label_style(text(13, &BLACK, HPos::Center))
        .draw()?;
    for (place, curve) in curves.iter().enumerate() {
        let color = [GREY, COLORS[0], COLORS[1]][place / 2 % 3];
        let style = color.stroke_width(2);
        let present = place % 2 == 1;
        chart.draw_series(LineSeries::new(curve.points.iter().copied(), style))?.label(curve.name.as_str()).legend(
            move |(x, y)| {
                let mark = if present { color.filled() } else { ShapeStyle::from(WHITE).filled() };
                EmptyElement::at((x, y))
                    + PathElement::new([(0, 0), (22, 0)], style)
                    + Circle::new((11, 0), 4, mark)
                    + Circle::new((11, 0), 4, style)
            },
        );
        let inside = if present { color.filled() } else { WHITE.filled() };
        chart.draw_series(curve.points.iter().map(|&point| Circle::new(point, 4, inside)))?;
        chart.draw_series(curve.points.iter().map(|&point| Circle::new(point, 4, style)))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.9))
        .border_style(GREY)
        .label_font(text(13, &BLACK, HPos::Left))
        .draw()?;
    root.present()?;
    Ok(())
}
