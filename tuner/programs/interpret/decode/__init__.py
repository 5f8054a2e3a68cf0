"""Operations -> steps over all lanes: one family of operations per file."""
