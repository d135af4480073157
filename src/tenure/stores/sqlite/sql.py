"""Every statement of the store, by name."""

from tenure.stores.sql_files import load_statements

SQL = {name: statement.sql for name, statement in load_statements("tenure.stores.sqlite").items()}
