"""Splits a file of the mysqltest language into commands.

A command is a statement that ends with the delimiter, a line that begins with `--`, the head of an
`if` or `while` block, or a closing brace. Text keeps its bytes: it is UTF-8 with surrogate escapes.
"""

import re
from collections import namedtuple

# word: the command's name in lower case, or "query"; text: its arguments, or the statement.
Command = namedtuple("Command", "word text line")

WORDS = set("""
append_file assert cat_file change_user character_set chmod connect connection copy_file copy_files_wildcard
dec delimiter die diff_files dirty_close disable_abort_on_error disable_async_client disable_connect_log
disable_info disable_metadata disable_ps_protocol disable_query_log disable_reconnect disable_result_log
disable_session_track_info disable_testcase disable_warnings disconnect echo enable_abort_on_error
enable_async_client enable_connect_log enable_info enable_metadata enable_ps_protocol enable_query_log
enable_reconnect enable_result_log enable_session_track_info enable_testcase enable_warnings end error
eval exec exec_in_background execw exit expr file_exists force-cpdir force-rmdir horizontal_results if inc
let list_files list_files_append_file list_files_write_file lowercase_result mkdir move_file output
partially_sorted_result perl ping query query_attributes query_get_value query_horizontal query_vertical
reap remove_file remove_files_wildcard replace_column replace_numeric_round replace_regex replace_result
reset_connection result_format rmdir save_master_pos send send_eval send_quit send_shutdown
shutdown_server skip skip_if_hypergraph sleep sorted_result source start_timer end_timer
sync_slave_with_master sync_with_master vertical_results wait_for_slave_to_stop while write_file
""".split())

# Commands followed by raw text up to a line that holds their end mark, with the mark's default.
RAW = {"perl": 0, "write_file": 1, "append_file": 1}


def first_word(text):
    """(name, rest): the command that begins `text`, or "query" and all of it."""
    match = re.match(r"([A-Za-z_-]+)(?=$|[\s(;$@])", text)
    if match and match.group(1).lower() in WORDS:
        return match.group(1).lower(), text[match.end():].strip()
    return "query", text


class Lexer:
    """Yields the commands of one file."""

    def __init__(self, text):
        self.text, self.at, self.line, self.delimiter = text.replace("\r\n", "\n"), 0, 1, ";"

    def commands(self):
        while True:
            self.skip_space()
            if self.at >= len(self.text):
                return
            line = self.line
            if self.text[self.at] == "#":
                self.take_line()
                continue
            if self.text[self.at] == "}":
                self.at += 1
                yield Command("}", "", line)
                continue
            if self.text.startswith("--", self.at):
                text = self.take_line()[2:].strip()
                word, rest = first_word(text)
                if word == "query" and not text.lower().startswith("query"):
                    continue  # a comment
            else:
                text = self.take_statement()
                word, rest = first_word(text)
            if word == "delimiter":
                self.delimiter = rest or ";"
                continue
            if word in RAW:
                self.skip_raw(rest.split(), RAW[word])
            if word != "query" or rest:
                yield Command(word, rest, line)

    def skip_space(self):
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.line += self.text[self.at] == "\n"
            self.at += 1

    def take_line(self):
        end = self.text.find("\n", self.at)
        end = len(self.text) if end < 0 else end
        taken, self.at = self.text[self.at:end], end + 1
        self.line += 1
        return taken

    def take_statement(self):
        """Text up to the delimiter outside quotes, or the head of a block up to its brace."""
        start, quote = self.at, None
        block = re.match(r"(if|while)\s*\(", self.text[start:start + 12], re.I)
        while self.at < len(self.text):
            c = self.text[self.at]
            if quote:
                if c == "\\" and quote != "`":
                    self.at += 1
                elif c == quote:
                    quote = None
            elif self.text.startswith(self.delimiter, self.at):
                break
            elif c == "{" and block:
                break
            elif c in "'\"`":
                quote = c
            self.at += 1
        taken = self.text[start:self.at]
        self.line += taken.count("\n")
        self.at += 1 if self.text[self.at:self.at + 1] == "{" and block else len(self.delimiter)
        return taken.strip()

    def skip_raw(self, words, index):
        mark = words[index] if len(words) > index else "EOF"
        self.take_line() if self.text[self.at:self.at + 1] == "\n" else None
        while self.at < len(self.text) and self.take_line().strip() != mark:
            pass


def blocks(commands):
    """Commands as a tree: a list of (command, body), with a body for `if` and `while` only."""
    root = []
    stack = [root]
    for command in commands:
        if command.word == "}" or command.word == "end":
            if len(stack) > 1:
                stack.pop()
        elif command.word in ("if", "while"):
            body = []
            stack[-1].append((command, body))
            stack.append(body)
            if command.text.endswith("{"):
                continue
        else:
            stack[-1].append((command, None))
    return root


def parse(path):
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as f:
        commands = list(Lexer(f.read()).commands())
    # A `{` on a line of its own was taken into the statement behind it by files that write it so.
    cleaned = []
    for c in commands:
        if c.word == "query" and c.text.startswith("{"):
            word, rest = first_word(c.text[1:].strip())
            c = Command(word, rest, c.line)
        if c.word in ("if", "while"):
            c = c._replace(text=c.text.rstrip("{ \n"))
        cleaned.append(c)
    return blocks(cleaned)
