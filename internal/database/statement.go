package database

import (
	"fmt"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// MaxStatement is the longest statement that is run, in bytes.
const MaxStatement = 16 << 10

// Check lets a statement through that only reads, and returns it as it is run: on
// one line, but for its strings, and without comments. It is refused with CodeInvalid unless all of this holds:
//
//   - it is one statement, with brackets that match, and begins with SELECT, WITH,
//     VALUES or TABLE
//   - no INSERT, UPDATE, DELETE or other change stands where a statement could
//     begin; there is no INTO, no locking clause and no assignment
//   - it calls functions of a list only, none that a user defined
//   - it holds no comment that a server would run, and no escaped identifier
//   - of the server's own tables it names those of a list only; any other, which may
//     hold passwords, files or what others asked, is CodeDenied
//
// The check errs towards refusing. It is a first wall; the database is the second.
func Check(statement string, d Dialect) (string, error) {
	if len(statement) > MaxStatement {
		return "", refuse("it is longer than %d bytes", MaxStatement)
	}
	l := lexer{text: statement, dialect: d}
	toks, err := l.tokens()
	if err != nil {
		return "", err
	}
	for len(toks) > 0 && toks[len(toks)-1].is(";") {
		toks = toks[:len(toks)-1]
	}
	if len(toks) == 0 {
		return "", refuse("it is empty")
	}
	c := checker{toks: toks, dialect: d}
	if err := c.check(); err != nil {
		return "", err
	}
	return written(statement, toks), nil
}

// written is a statement on one line, without comments: its tokens, with one space where anything was between them.
func written(statement string, toks []token) string {
	var b strings.Builder
	for i, t := range toks {
		if i > 0 && toks[i-1].end != t.start {
			b.WriteByte(' ')
		}
		b.WriteString(statement[t.start:t.end])
	}
	return b.String()
}

// refuse is the error of a statement that is not run.
func refuse(format string, args ...any) error {
	return &marchwarden.Error{Code: marchwarden.CodeInvalid, Message: "the statement is not run: " + fmt.Sprintf(format, args...),
		Hint: "one SELECT statement with common functions is"}
}

type checker struct {
	toks    []token
	dialect Dialect
	close   map[int]int  // index of each opening bracket → of its closing one
	named   map[int]bool // names of common table expressions, which are no calls
}

func (c *checker) check() error {
	if err := c.match(); err != nil {
		return err
	}
	first := 0
	for first < len(c.toks) && c.toks[first].is("(") {
		first++
	}
	if first == len(c.toks) || !openers[c.toks[first].word()] {
		return refuse("it begins with none of SELECT, WITH, VALUES")
	}
	c.nameTables()
	for i := range c.toks {
		if err := c.token(i); err != nil {
			return err
		}
	}
	return nil
}

var openers = set("select with values table")

// match finds the bracket that closes each one.
func (c *checker) match() error {
	c.close = map[int]int{}
	var open []int
	for i, t := range c.toks {
		switch {
		case t.is(";"):
			return refuse("it is more than one")
		case t.is("("):
			open = append(open, i)
		case t.is(")"):
			if len(open) == 0 {
				return refuse("a bracket closes that was not opened")
			}
			c.close[open[len(open)-1]] = i
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return refuse("a bracket is not closed")
	}
	return nil
}

// at is the word at i in lower case, "" where there is none.
func (c *checker) at(i int) string {
	if i < 0 || i >= len(c.toks) {
		return ""
	}
	return c.toks[i].word()
}

func (c *checker) opens(i int) bool { return i >= 0 && i < len(c.toks) && c.toks[i].is("(") }

// nameTables finds the names that WITH gives: "WITH a(x) AS (…), b AS (…)".
func (c *checker) nameTables() {
	c.named = map[int]bool{}
	for i := range c.toks {
		if c.at(i) != "with" {
			continue
		}
		at := i + 1
		if c.at(at) == "recursive" {
			at++
		}
		for at < len(c.toks) && c.toks[at].name() {
			next := at + 1
			if c.opens(next) {
				next = c.close[next] + 1
			}
			if c.at(next) != "as" {
				break
			}
			next++
			if c.at(next) == "not" {
				next++
			}
			if c.at(next) == "materialized" {
				next++
			}
			if !c.opens(next) {
				break
			}
			c.named[at] = true
			if at = c.close[next] + 1; at >= len(c.toks) || !c.toks[at].is(",") {
				break
			}
			at++
		}
	}
}

var writers = set("insert update delete merge replace truncate")

func (c *checker) token(i int) error {
	t := c.toks[i]
	w := t.word()
	switch {
	case t.kind == tokenString && i > 0 && c.toks[i-1].kind == tokenString:
		return refuse("two strings stand side by side") // how they join differs
	case w == "into":
		return refuse("it has INTO")
	case t.is(":="):
		return refuse("it assigns to a variable")
	case w == "for" && locking[c.at(i+1)], w == "lock" && c.at(i+1) == "in":
		return refuse("it locks rows")
	case w == "outfile", w == "dumpfile", w == "procedure":
		return refuse("it has %s", strings.ToUpper(w))
	case writers[w] && i > 0 && (c.toks[i-1].is("(") || c.toks[i-1].is(")")) && !c.opens(i+1):
		return refuse("it has %s", strings.ToUpper(w))
	case t.name() && c.opens(i+1):
		return c.call(i)
	case t.name() && c.secret(i):
		return withheld(t.value)
	}
	return nil
}

// withheld is the error of a statement that reads what is the server's own.
func withheld(name string) *marchwarden.Error {
	return &marchwarden.Error{Code: marchwarden.CodeDenied, Message: "the statement is not run: " + clip(name) + " is the server's own, and may hold secrets",
		Hint: "ask the tables of the database"}
}

// secret reports a name that may be a table of the server's own that is not on the list.
func (c *checker) secret(i int) bool {
	name := strings.ToLower(c.toks[i].value)
	switch c.dialect {
	case Postgres:
		return strings.HasPrefix(name, "pg_") && name != "pg_catalog" && !catalogs[name] ||
			strings.HasPrefix(name, "_pg_") || strings.HasSuffix(name, "_options") && c.after(i, "information_schema")
	case MySQL:
		return systemSchemas[name] && i+1 < len(c.toks) && c.toks[i+1].is(".") && name != "information_schema" ||
			c.after(i, "information_schema") && !catalogs[name]
	}
	return strings.HasPrefix(name, "pragma_") || strings.HasPrefix(name, "sqlite_") && !catalogs[name]
}

// after reports whether the name at i is qualified by another.
func (c *checker) after(i int, schema string) bool {
	return i >= 2 && c.toks[i-1].is(".") && strings.EqualFold(c.toks[i-2].value, schema)
}

// catalogs are the tables of servers that say what tables there are, and no more.
var catalogs = set(`pg_class pg_namespace pg_attribute pg_attrdef pg_type pg_enum pg_constraint pg_index pg_inherits pg_description pg_tables pg_views pg_matviews pg_indexes
	tables columns schemata views statistics key_column_usage table_constraints referential_constraints check_constraints
	sqlite_master sqlite_schema`)

// systemSchemas are the databases of a MySQL server that are its own.
var systemSchemas = set("mysql information_schema performance_schema sys")

var locking = set("update share no key")

// call looks at a name before a bracket.
func (c *checker) call(i int) error {
	t := c.toks[i]
	w := t.word()
	if c.named[i] || c.at(i-1) == "as" || w != "" && beforeBracket[w] {
		return nil
	}
	if i >= 2 && c.toks[i-1].is(".") {
		if q := c.toks[i-2]; !strings.EqualFold(q.value, "pg_catalog") || c.dialect != Postgres || i >= 3 && c.toks[i-3].is(".") {
			return refuse("%s is a function that a user defined", clip(t.value))
		}
	}
	name := t.value
	if t.kind == tokenWord {
		name = w
	}
	if functions[name] || c.dialect != MySQL && own[c.dialect][name] || c.dialect == MySQL && own[MySQL][strings.ToLower(name)] {
		return nil
	}
	return refuse("the function %s is not on the list", clip(t.value))
}

func clip(s string) string {
	const most = 60
	if s = Printable(s); len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// beforeBracket are words that may stand before a bracket and call nothing: key words, and types with a size.
var beforeBracket = set(`in as values over from join on using and or not where select union all intersect except exists any some when then else case between like ilike
	filter group by having limit offset distinct materialized lateral partition order within escape is rows range interval similar to cross inner outer left right full natural
	table with recursive end asc desc sets grouping cube rollup array row window div mod xor regexp rlike glob match collate
	varchar character char numeric decimal dec float timestamp timestamptz time timetz bit varbit nvarchar varchar2 text int integer bigint smallint tinyint double precision number nchar binary varbinary`)

// functions may be called in every dialect: they compute, and reach nothing.
var functions = set(`count sum avg min max total abs ceil ceiling floor round sign sqrt power pow exp ln log log10 log2 mod pi degrees radians sin cos tan asin acos atan atan2 trunc truncate
	lower upper length char_length character_length octet_length trim ltrim rtrim substr substring replace instr position strpos left right reverse concat concat_ws initcap ascii chr unicode
	coalesce nullif ifnull iif if greatest least cast convert
	row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value
	date time datetime julianday strftime unixepoch timediff extract year month day hour minute second quarter week dayofweek dayofyear dayofmonth weekday last_day
	now current_date current_time current_timestamp localtime localtimestamp
	group_concat string_agg json_extract json_array_length json_type json_valid json_each
	stddev stddev_pop stddev_samp variance var_pop var_samp median percentile_cont percentile_disc mode corr covar_pop covar_samp`)

// own are the functions of one dialect.
var own = map[Dialect]map[string]bool{
	SQLite: set(`typeof likely unlikely hex quote char bm25 highlight snippet json json_array json_object json_group_array json_group_object json_tree`),
	Postgres: set(`array_agg array_length array_to_string cardinality unnest string_to_array split_part regexp_replace regexp_match regexp_matches regexp_count regexp_like regexp_substr
		to_char to_date to_timestamp to_number date_part date_trunc date_bin age make_date justify_interval bool_and bool_or every
		to_tsvector to_tsquery plainto_tsquery phraseto_tsquery websearch_to_tsquery ts_rank ts_rank_cd ts_headline numnode similarity word_similarity
		jsonb_array_length jsonb_typeof json_typeof jsonb_extract_path_text json_extract_path_text jsonb_array_elements jsonb_array_elements_text json_array_elements json_array_elements_text
		jsonb_each jsonb_each_text json_each_text jsonb_object_keys json_object_keys to_json to_jsonb row_to_json json_agg jsonb_agg json_build_object jsonb_build_object
		generate_series width_bucket div gcd lcm cbrt btrim translate overlay starts_with num_nonnulls num_nulls format_type col_description obj_description regr_slope regr_intercept regr_r2
		lower_inc upper_inc isempty date_add date_subtract generate_subscripts array_position array_remove bit_length md5 unaccent pg_typeof`),
	MySQL: set(`date_format date_add date_sub adddate subdate datediff timestampdiff timestampadd str_to_date to_days from_days from_unixtime unix_timestamp makedate dayname monthname yearweek
		curdate curtime locate find_in_set field elt substring_index format regexp_replace regexp_like regexp_substr regexp_instr match against
		json_unquote json_keys json_contains json_length json_arrayagg json_objectagg any_value std bit_count conv crc32 lcase ucase mid isnull char ord strcmp interval
		json_value json_table`),
}

func set(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}
