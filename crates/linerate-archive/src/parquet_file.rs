//! Runs as a Parquet file: the columns of the CSV, with types.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

use crate::archive::Archive;
use crate::columns::{COLUMNS, Cell, CellKind, Column};
use crate::error::ArchiveError;
use crate::events::clamped;
use crate::runs::{RunFilter, Stored};

/// So many runs are held in memory, and become a group of rows.
const GROUP: usize = 16_384;

impl Archive {
    /// Writes runs as a Parquet file, the oldest first; how many. It holds 16,384 of them at a time.
    ///
    /// Moments are timestamps in ms of UTC, rates in bit/s and shares are doubles, durations in ns are 64-bit integers,
    /// findings are a list. A value is null where it is not known, and every figure of a test that did not measure.
    ///
    /// # Errors
    /// The database's; [`ArchiveError::Output`] where `out` cannot be written: what is there then is no Parquet file.
    pub fn export_parquet(
        &self,
        filter: &RunFilter,
        out: &mut (dyn Write + Send),
    ) -> Result<u64, ArchiveError> {
        let schema = schema().map_err(failed)?;
        let mut file =
            SerializedFileWriter::new(out, schema, Arc::new(properties())).map_err(failed)?;
        let mut group: Vec<Stored> = Vec::new();
        let mut rows = 0;
        self.each_run(filter, true, |stored| {
            rows += 1;
            group.push(stored);
            if group.len() == GROUP {
                write_group(&mut file, &group).map_err(failed)?;
                group.clear();
            }
            Ok(())
        })?;
        if !group.is_empty() {
            write_group(&mut file, &group).map_err(failed)?;
        }
        file.close().map_err(failed)?;
        Ok(rows)
    }
}

fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(concat!("linerate version ", env!("CARGO_PKG_VERSION")).to_owned())
        .build()
}

fn schema() -> Result<TypePtr, ParquetError> {
    let fields = COLUMNS.iter().map(|column| field(column).map(Arc::new));
    let fields = fields.collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder("run")
        .with_fields(fields)
        .build()?;
    Ok(Arc::new(schema))
}

fn field(column: &Column) -> Result<Type, ParquetError> {
    let (physical, logical) = match column.kind {
        CellKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        CellKind::Moment => (
            Physical::INT64,
            Some(LogicalType::timestamp(true, TimeUnit::MILLIS)),
        ),
        CellKind::Real => (Physical::DOUBLE, None),
        CellKind::Count => (Physical::INT64, None),
        CellKind::Flag => (Physical::BOOLEAN, None),
        CellKind::Texts => return list(column.name),
    };
    let repetition = if column.always {
        Repetition::REQUIRED
    } else {
        Repetition::OPTIONAL
    };
    Type::primitive_type_builder(column.name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build()
}

/// A list of texts in three levels, as the format's rules say (LogicalTypes.md, Lists).
fn list(name: &str) -> Result<Type, ParquetError> {
    let element = Type::primitive_type_builder("element", Physical::BYTE_ARRAY)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(Some(LogicalType::String))
        .build()?;
    let repeated = Type::group_type_builder("list")
        .with_repetition(Repetition::REPEATED)
        .with_fields(vec![Arc::new(element)])
        .build()?;
    Type::group_type_builder(name)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(Some(LogicalType::List))
        .with_fields(vec![Arc::new(repeated)])
        .build()
}

fn write_group<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    runs: &[Stored],
) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for column in &COLUMNS {
        let mut writer = group
            .next_column()?
            .ok_or_else(|| ParquetError::General(format!("no column for {}", column.name)))?;
        let cells = runs.iter().map(column.of);
        write_column(&mut writer, column, cells)?;
        writer.close()?;
    }
    group.close()?;
    Ok(())
}

fn write_column(
    writer: &mut SerializedColumnWriter<'_>,
    column: &Column,
    cells: impl Iterator<Item = Cell>,
) -> Result<(), ParquetError> {
    match column.kind {
        CellKind::Text => plain::<ByteArrayType>(writer, column, cells, |cell| match cell {
            Cell::Text(text) => Some(ByteArray::from(text.into_bytes())),
            _ => None,
        }),
        CellKind::Moment => plain::<Int64Type>(writer, column, cells, |cell| match cell {
            Cell::Moment(at) => Some(clamped(at.0)),
            _ => None,
        }),
        CellKind::Count => plain::<Int64Type>(writer, column, cells, |cell| match cell {
            Cell::Count(value) => Some(clamped(value)),
            _ => None,
        }),
        CellKind::Real => plain::<DoubleType>(writer, column, cells, |cell| match cell {
            Cell::Real(value) => Some(value),
            _ => None,
        }),
        CellKind::Flag => plain::<BoolType>(writer, column, cells, |cell| match cell {
            Cell::Flag(value) => Some(value),
            _ => None,
        }),
        CellKind::Texts => texts(writer, cells),
    }
}

fn plain<D: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    column: &Column,
    cells: impl Iterator<Item = Cell>,
    value: impl Fn(Cell) -> Option<D::T>,
) -> Result<(), ParquetError> {
    let (mut values, mut definition) = (Vec::new(), Vec::new());
    for cell in cells {
        let value = value(cell);
        definition.push(i16::from(value.is_some()));
        values.extend(value);
    }
    let definition = (!column.always).then_some(definition.as_slice());
    writer.typed::<D>().write_batch(&values, definition, None)?;
    Ok(())
}

/// The definition of a list that is absent is 0, of an empty one 1, of one with elements 2; an element that continues a list
/// repeats it.
fn texts(
    writer: &mut SerializedColumnWriter<'_>,
    cells: impl Iterator<Item = Cell>,
) -> Result<(), ParquetError> {
    let (mut values, mut definition, mut repetition) = (Vec::new(), Vec::new(), Vec::new());
    for cell in cells {
        let (texts, level) = match cell {
            Cell::Texts(texts) => (texts, 1),
            _ => (Vec::new(), 0),
        };
        if texts.is_empty() {
            definition.push(level);
            repetition.push(0);
        }
        for (place, text) in texts.into_iter().enumerate() {
            definition.push(2);
            repetition.push(i16::from(place > 0));
            values.push(ByteArray::from(text.into_bytes()));
        }
    }
    writer
        .typed::<ByteArrayType>()
        .write_batch(&values, Some(&definition), Some(&repetition))?;
    Ok(())
}

/// What is written goes to `out` alone, so that an error is its error.
fn failed(error: ParquetError) -> ArchiveError {
    let error = match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(source) => return ArchiveError::output(*source),
            Err(source) => source.to_string(),
        },
        other => other.to_string(),
    };
    ArchiveError::output(std::io::Error::other(error))
}
