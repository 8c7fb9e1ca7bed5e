"""What people see: records, counts, pages, storage."""
