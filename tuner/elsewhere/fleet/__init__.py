"""Runs whose candidates are compiled and measured by processes on other machines, over a shared database.

Entry points alone name its modules: no other package imports them.
"""
