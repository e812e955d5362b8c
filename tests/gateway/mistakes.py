# ruff: noqa: E501  (one mistake a row, its line as it is printed)
"""Every mistake in the settings, and the one line that it gives."""

from __future__ import annotations

from typing import Final

#: TOML that is wrong in one way, and what is said of it behind the name of the file.
MISTAKES: Final[list[tuple[str, str]]] = [
    ("a = ", "line 1: invalid value; mend the TOML"),
    ("[http]\nport = 1\nport = 2\n", "line 3: cannot overwrite a value; mend the TOML"),
    ("[http\n", "line 1: expected ']' at the end of a table declaration; mend the TOML"),
    ('ledger = """', "line 1: unterminated string; mend the TOML"),
    ("nmespace = true", "nmespace: unknown key; did you mean namespace?"),
    (
        "zzz = 1",
        "zzz: unknown key; leave it out; known here: ledger, durability, record, deterministic, namespace, log_level, max_request_bytes, max_result_bytes, http, rules, upstreams",
    ),
    ("port = 1", "port: unknown key; did you mean http.port?"),
    ("http.prot = 1", "http.prot: unknown key; did you mean port?"),
    (
        '[upstreams.a]\ncommand=["x"]\ncomand="x"',
        "upstreams.a.comand: unknown key; did you mean command?",
    ),
    ("[rules]\ntimeot = 1", "rules.timeot: unknown key; did you mean timeout?"),
    (
        "[rules]\nqqq = 1",
        "rules.qqq: unknown key; leave it out; known here: input, output, label, unknown_tools, timeout, concurrency, retries, bodies, digests, redact_credentials, redact_keys, redact_pointers",
    ),
    (
        '[upstreams.a]\ncommand="x"\n[upstreams.a.tools."get time"]\nunknown_tools = "pass"',
        'upstreams.a.tools."get time".unknown_tools: unknown key; did you mean rules.unknown_tools?',
    ),
    ('Ledger = "memory:"', "Ledger: unknown key; did you mean ledger?"),
    ('log-level = "info"', "log-level: unknown key; did you mean log_level?"),
    ("http = 5", "http: must be a table, not 5; make it a table"),
    ('upstreams = ["x"]', "upstreams: must be a table, not an array; make it a table"),
    ('namespace = "yes"', "namespace: must be true or false, not a text; write true or false"),
    ('namespace = "true"', "namespace: must be true or false, not a text; write it without quotes"),
    (
        "max_request_bytes = 1.5",
        "max_request_bytes: must be an integer, not 1.5; write a whole number",
    ),
    ('http.port = "80"', "http.port: must be an integer, not a text; write it without quotes"),
    (
        'log_level = "inf"',
        'log_level: must be one of "debug", "info", "warning", "error", not "inf"; did you mean "info"?',
    ),
    (
        'log_level = "zzz"',
        'log_level: must be one of "debug", "info", "warning", "error", not "zzz"; write one of them',
    ),
    (
        "rules.output = true",
        'rules.output: must be one of "off", "warn", "strict", not true; write one of them',
    ),
    ("http.port = 65536", "http.port: must be at most 65535, not 65536; write 0 to 65535"),
    ("http.port = -1", "http.port: must be at least 0, not -1; write 0 to 65535"),
    (
        "max_request_bytes = 1",
        "max_request_bytes: must be at least 1024, not 1; write 1024 to 1073741824",
    ),
    ("rules.retries = 101", "rules.retries: must be at most 100, not 101; write 0 to 100"),
    (
        '[upstreams.a]\ncommand="x"\nprocesses=0',
        "upstreams.a.processes: must be at least 1, not 0; write 1 to 4096",
    ),
    (
        'rules.timeout = "soon"',
        'rules.timeout: must not be "soon"; write seconds, or a text such as "500ms", "30s", "2m" or "1h"',
    ),
    ("rules.timeout = -1", "rules.timeout: must be at least 0, not -1; write 0 to 31536000"),
    (
        'rules.timeout = "3d"',
        'rules.timeout: must not be "3d"; write seconds, or a text such as "500ms", "30s", "2m" or "1h"',
    ),
    (
        "rules.timeout = true",
        'rules.timeout: must not be true; write seconds, or a text such as "500ms", "30s", "2m" or "1h"',
    ),
    ('rules.timeout = "9000h"', "rules.timeout: is longer than a year; write 0 for no bound"),
    (
        'upstreams.a={command="x",idle=[]}',
        'upstreams.a.idle: must not be an array; write seconds, or a text such as "500ms", "30s", "2m" or "1h"',
    ),
    ("rules.timeout = nan", "rules.timeout: must be a finite number; leave it out for no bound"),
    (
        "rules.timeout = 1979-05-27",
        "rules.timeout: must not be a date or time; put it in quotes if it is a text",
    ),
    (
        'rules.bodies = "error"',
        'rules.bodies: must be one of "none", "errors", "all", not "error"; did you mean "errors"?',
    ),
    ("rules.digests = 1", "rules.digests: must be true or false, not 1; write true or false"),
    (
        'rules.redact_pointer = ["/input/a"]',
        "rules.redact_pointer: unknown key; did you mean redact_pointers?",
    ),
    (
        'rules.redact_pointers = ["/arguments/a"]',
        'rules.redact_pointers[0]: must not be "/arguments/a"; write a JSON pointer that begins with /input or /output, such as `/output/structuredContent/rows/*/email`',
    ),
    (
        'rules.redact_pointers = ["/input", "input/a"]',
        'rules.redact_pointers[1]: must not be "input/a"; write a JSON pointer that begins with /input or /output, such as `/output/structuredContent/rows/*/email`',
    ),
    (
        'rules.redact_pointers = ["/input/a~b"]',
        'rules.redact_pointers[0]: must not be "/input/a~b"; write a JSON pointer that begins with /input or /output, such as `/output/structuredContent/rows/*/email`',
    ),
    (
        'rules.redact_pointers = "/input/a"',
        'rules.redact_pointers: must be an array, not a text; write ["…", "…"]',
    ),
    (
        'rules.redact_keys = [""]',
        'rules.redact_keys[0]: must not be ""; write the name of a member, of at most 100 characters',
    ),
    (
        'rules.redact_keys = ["ssn", "--"]',
        "rules.redact_keys[1]: has no letters or digits; name a member, such as ssn",
    ),
    (
        '[upstreams.a]\ncommand="x"\ntools.t.redact_keys = ["_"]',
        "upstreams.a.tools.t.redact_keys[0]: has no letters or digits; name a member, such as ssn",
    ),
    (
        '[rules]\nbodies = "all"\ndigests = false',
        "rules.bodies: has no effect without digests; leave one of them out",
    ),
    (
        "record.max_body_bytes = 0",
        "record.max_body_bytes: must be at least 1, not 0; write 1 to 1073741824",
    ),
    (
        'deterministic = "yes"',
        "deterministic: must be true or false, not a text; write true or false",
    ),
    (
        "rules.retries = 99999999999999999999",
        "rules.retries: is too large a number; write a smaller one",
    ),
    (
        'ledger = "postgres://u:hunter2@h/x"',
        "ledger: this version cannot keep the record in postgres: yet; write `sqlite:PATH`, `jsonl:PATH` or `memory:`",
    ),
    (
        'durability = "fsync"',
        'durability: must be one of "process", "power", not "fsync"; write one of them',
    ),
    ("record = true", "record: must be a table, not true; make it a table"),
    (
        "record.checkpoint_lines = 0",
        "record.checkpoint_lines: must be at least 1, not 0; write 1 to 1000000",
    ),
    ("record.chekpoints = false", "record.chekpoints: unknown key; did you mean checkpoints?"),
    (
        'record.checkpoint_time = "often"',
        'record.checkpoint_time: must not be "often"; write seconds, or a text such as "500ms", "30s", "2m" or "1h"',
    ),
    (
        'record.publish_command = "a \'b"',
        "record.publish_command: ends inside quotes; write the words as an array",
    ),
    (
        'record.archive = "/x"',
        "record.archive: has no effect: nothing is removed; add record.keep_days, or leave it out",
    ),
    (
        'ledger = "jsonl:x"\nrecord.keep_days = 3',
        "record.keep_days: has no effect on this ledger; keep the record in sqlite:PATH, or leave it out",
    ),
    ('ledger = "jsonl:"', "ledger: is not usable; write `sqlite:PATH`, `jsonl:PATH` or `memory:`"),
    ("ledger = 5", "ledger: must not be a number; write `sqlite:PATH`, `jsonl:PATH` or `memory:`"),
    (
        'ledger = "jsonl:a\\u0000"',
        "ledger: is not usable; write `sqlite:PATH`, `jsonl:PATH` or `memory:`",
    ),
    (
        '[upstreams.a]\ncommand="x"\nurl="http://h"',
        "upstreams.a: has both a command and a url; leave one of them out",
    ),
    ("[upstreams.a]\n", "upstreams.a: has neither a command nor a url; add one of them"),
    (
        'upstreams.a.url="ftp://h"',
        "upstreams.a.url: is no http:// or https:// URL; name a Streamable HTTP endpoint, such as https://…/mcp",
    ),
    (
        'upstreams.a.url="http:///x"',
        "upstreams.a.url: has no usable host; write http://HOST:PORT/PATH or https://…",
    ),
    (
        'upstreams.a.url="http://u:hunter2@h"',
        "upstreams.a.url: has a user name or password in it; put an authorization header into headers",
    ),
    (
        'upstreams.a.url="http://h/a b"',
        "upstreams.a.url: has characters that no URL has; escape them with %",
    ),
    (
        'upstreams.a.url="http://h:99999/"',
        "upstreams.a.url: is no URL; write http://HOST:PORT/PATH or https://…",
    ),
    (
        'upstreams.a.url="http://h/#x"',
        "upstreams.a.url: has a fragment, which no server gets to see; leave out the #…",
    ),
    (
        'upstreams.a.url="http://[::1/"',
        "upstreams.a.url: is no URL; write http://HOST:PORT/PATH or https://…",
    ),
    ("upstreams.a.url=1", 'upstreams.a.url: must be a text, not a number; put it in quotes: "…"'),
    ('upstreams.a.url=""', "upstreams.a.url: must not be empty; fill it, or leave it out"),
    ("upstreams.a.command=[]", "upstreams.a.command: must not be empty; fill it, or leave it out"),
    ('upstreams.a.command=""', "upstreams.a.command: must not be empty; fill it, or leave it out"),
    ('upstreams.a.command="  "', "upstreams.a.command: is empty; name the program to start"),
    ('upstreams.a.command=[""]', "upstreams.a.command: is empty; name the program to start"),
    (
        'upstreams.a.command="a \'b"',
        "upstreams.a.command: ends inside quotes; write the words as an array",
    ),
    (
        'upstreams.a.command="a \\\\"',
        "upstreams.a.command: ends with a backslash; write the words as an array",
    ),
    (
        'upstreams.a.command=["a",1]',
        'upstreams.a.command[1]: must be a text, not a number; put it in quotes: "…"',
    ),
    (
        'upstreams.a.command=["a\\u0000"]',
        "upstreams.a.command: holds a NUL character; leave it out",
    ),
    (
        "upstreams.a.command={a=1}",
        'upstreams.a.command: must be an array or a text, not a table; write ["…", "…"]',
    ),
    (
        '[upstreams."a b"]\ncommand="x"\n[upstreams.a_b]\ncommand="x"',
        'upstreams.a_b: is called a_b__… to clients, as upstreams."a b" is; rename one of them',
    ),
    (
        '[upstreams.A]\ncommand="x"\n[upstreams.a]\ncommand="x"',
        "upstreams.a: is called a__… to clients, as upstreams.A is; rename one of them",
    ),
    (
        'upstreams."日本".command="x"',
        'upstreams."日本": the name has nothing that tools\' names may hold; give it a name with letters or digits',
    ),
    (
        'upstreams."a/b".command="x"',
        'upstreams."a/b": the name is not usable; it must be a name of at most 64 characters, without `/`, `\\`, control characters or a dot in front',
    ),
    (
        'upstreams.".a".command="x"',
        'upstreams.".a": the name is not usable; it must be a name of at most 64 characters, without `/`, `\\`, control characters or a dot in front',
    ),
    (
        'upstreams."".command="x"',
        'upstreams."": the name is not usable; it must be a name of at most 64 characters, without `/`, `\\`, control characters or a dot in front',
    ),
    (
        '[upstreams.a]\ncommand="x"\nenv.T={env="NOPE"}',
        "upstreams.a.env.T: the variable NOPE is not set; set it",
    ),
    (
        '[upstreams.a]\ncommand="x"\nenv.T={file="/nonexistent"}',
        "upstreams.a.env.T: the file cannot be read: No such file or directory; name another",
    ),
    (
        '[upstreams.a]\ncommand="x"\nenv.T=7',
        'upstreams.a.env.T: must not be a number; write a text, { env = "VAR" } or { file = "PATH" }',
    ),
    (
        '[upstreams.a]\ncommand="x"\nenv.T={}',
        'upstreams.a.env.T: must hold one of env and file; write a text, { env = "VAR" } or { file = "PATH" }',
    ),
    (
        '[upstreams.a]\ncommand="x"\nenv.T={env="A",file="B"}',
        'upstreams.a.env.T: must hold one of env and file; write a text, { env = "VAR" } or { file = "PATH" }',
    ),
    (
        '[upstreams.a]\ncommand="x"\nenv.T={evn="A"}',
        "upstreams.a.env.T.evn: unknown key; did you mean env?",
    ),
    (
        '[upstreams.a]\ncommand="x"\nenv."A=B"="c"',
        'upstreams.a.env."A=B": the name is not usable; it must be the name of a variable, without `=`',
    ),
    (
        '[upstreams.a]\ncommand="x"\nenv.A="\\u0000"',
        "upstreams.a.env.A: holds a NUL character; leave it out",
    ),
    (
        '[upstreams.a]\ncommand="x"\nenv=["A=b"]',
        "upstreams.a.env: must be a table, not an array; make it a table",
    ),
    (
        '[upstreams.a]\nurl="http://h"\nheaders."a b"="c"',
        'upstreams.a.headers."a b": the name is not usable; it must be the name of a header',
    ),
    (
        '[upstreams.a]\nurl="http://h"\nheaders.a="hunter2\\n"',
        "upstreams.a.headers.a: holds characters that no header may; write plain ASCII",
    ),
    (
        '[upstreams.a]\nurl="http://h"\nheaders.Host="c"',
        "upstreams.a.headers.Host: is a header of the protocol's own; leave it out",
    ),
    (
        '[upstreams.a]\nurl="http://h"\nheaders.a="c"\nheaders.A="d"',
        "upstreams.a.headers.a: is there twice; leave one of them out",
    ),
    (
        '[upstreams.a]\ncommand="x"\nheaders.a="c"',
        "upstreams.a.headers: has no effect beside a command; it goes with a url: leave it out",
    ),
    (
        '[upstreams.a]\nurl="http://h"\nenv.a="c"',
        "upstreams.a.env: has no effect beside a url; it goes with a command: leave it out",
    ),
    (
        '[upstreams.a]\nurl="http://h"\ncwd="c"',
        "upstreams.a.cwd: has no effect beside a url; it goes with a command: leave it out",
    ),
    (
        'http.listen="0.0.0.0:80"',
        "http.listen: is no loopback address, and without authentication nothing else is served; listen on 127.0.0.1 or [::1]",
    ),
    (
        'http.listen="[::]:80"',
        "http.listen: is no loopback address, and without authentication nothing else is served; listen on 127.0.0.1 or [::1]",
    ),
    (
        'http.host="example.com"',
        "http.host: is no loopback address, and without authentication nothing else is served; listen on 127.0.0.1 or [::1]",
    ),
    (
        'http.listen="localhost"',
        "http.listen: has no port; write HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080, or a port alone",
    ),
    (
        'http.listen="::1:80"',
        "http.listen: has an IPv6 address without brackets; write HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080, or a port alone",
    ),
    (
        "http.listen=true",
        "http.listen: must not be true; write HOST:PORT, such as 127.0.0.1:8080, or a port alone",
    ),
    (
        '[http]\nlisten=":80"\nport=80',
        "http.listen: says what http.port says too; leave one of them out",
    ),
    (
        'http.listen="localhost:70000"',
        "http.listen: has no port between 0 and 65535; write HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080, or a port alone",
    ),
    (
        'http.hosts=["http://a"]',
        'http.hosts[0]: must not be "http://a"; write a host, or HOST:PORT',
    ),
    ('http.hosts="a"', 'http.hosts: must be an array, not a text; write ["…", "…"]'),
    (
        'http.origins=["example.com"]',
        'http.origins[0]: must not be "example.com"; write an origin, such as `https://console.example.com`, without a path',
    ),
    (
        'http.origins=["https://example.com/x"]',
        'http.origins[0]: must not be "https://example.com/x"; write an origin, such as `https://console.example.com`, without a path',
    ),
]
