"""The results database: tables, migrations, and the store that gives and takes values."""
