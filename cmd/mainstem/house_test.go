package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const modulePath = "github.com/mainstem/mainstem"

// Ceilings of the house, in lines.
const (
	fileCeiling     = 600
	functionCeiling = 80
	usualFunction   = 50 // 95 of 100 functions are at most this long.
)

// arrows are the packages of this module, and which others each may import.
// protocol/batch is the one format on both wire and disk, so everybody may.
func arrows() map[string][]string {
	handlers := []string{"broker/config", "broker/metrics", "broker/quota", "broker/replica", "controller", "controller/meta", "log", "protocol"}
	return map[string][]string{
		"cmd/mainstem": {"broker", "broker/config", "broker/metrics", "log", "log/vfs"},
		"broker": {
			"broker/admin", "broker/clients", "broker/config", "broker/groups", "broker/http", "broker/metrics", "broker/quota", "broker/records",
			"broker/replica", "broker/txns", "controller", "controller/meta", "coordinator", "coordinator/group", "coordinator/txn",
			"log", "log/vfs", "protocol",
		},
		"broker/admin":   append([]string{"controller/placement"}, handlers...),
		"broker/clients": {"coordinator/group", "protocol"},
		"broker/groups":  append([]string{"coordinator", "coordinator/group"}, handlers...),
		"broker/txns":    append([]string{"coordinator", "coordinator/group", "coordinator/txn"}, handlers...),
		"broker/records": handlers,
		"broker/replica": {"broker/config", "broker/metrics", "controller/meta", "log", "protocol"},
		// A broker in miniature, for the tests of replica and records.
		"broker/replica/replicatest": {"broker/config", "broker/metrics", "broker/replica", "controller/meta", "log", "log/vfs"},
		"broker/config":              {"controller/meta"},
		"broker/http":                {},
		"broker/metrics":             {},
		"broker/quota":               {"controller/meta"},

		"controller":      {"controller/meta"},
		"controller/meta": {},
		// Who leads, and who holds what.
		"controller/placement": {"controller/meta"},

		"coordinator":              {},
		"coordinator/group":        {"coordinator", "coordinator/group/assign"},
		"coordinator/group/assign": {},
		"coordinator/txn":          {"coordinator"},
		"coordinator/journaltest":  {"coordinator"}, // A journal in memory, for tests.

		"log":             {"log/commitlog", "log/queue", "log/vfs"},
		"log/storetest":   {"log", "log/vfs", "log/vfs/errorfs"},
		"log/queue":       {"log/commitlog", "log/vfs"},
		"log/commitlog":   {"log/vfs"},
		"log/vfs":         {},
		"log/vfs/errorfs": {"log/vfs"},

		"protocol":       {},
		"protocol/batch": {},
	}
}

// homes says where alone a package from outside may be imported, tests aside.
func homes() map[string][]string {
	logging := []string{"cmd/mainstem", "broker", "broker/admin", "broker/groups", "broker/http", "broker/records", "broker/replica", "broker/txns", "controller"}
	return map[string][]string{
		"log":                               {}, // Package log is ours; we log with zap.
		"log/slog":                          {},
		"os":                                {"cmd/mainstem", "log/vfs", "controller", "coordinator/journaltest"}, // The embedded etcd has a folder of its own; scripts are files.
		"os/signal":                         {"cmd/mainstem"},
		"os/exec":                           {},
		"net/http":                          {"broker/http", "cmd/mainstem"},
		"syscall":                           {"cmd/mainstem", "log/vfs", "broker/http", "protocol"},
		"golang.org/x/sys/unix":             {"log/vfs", "protocol", "controller"},
		"go.uber.org/zap":                   logging,
		"go.uber.org/zap/zapcore":           logging,
		"github.com/spf13/cobra":            {"cmd/mainstem"},
		"go.etcd.io/etcd/":                  {"controller"},
		"github.com/twmb/franz-go/pkg/kgo":  {"cmd/mainstem"},
		"github.com/twmb/franz-go/pkg/kadm": {"cmd/mainstem"},
		"github.com/prometheus/":            {"broker", "broker/http", "broker/metrics"},
	}
}

// sockets are the parts of package net that open or resolve something; the rest
// is types and the spelling of addresses, which anybody may use.
var sockets = regexp.MustCompile(`^(Dial|Listen|Lookup|Resolve|FileConn|FileListener|Dialer$|ListenConfig$|Resolver$|DefaultResolver$|Interface)`)

func socketHomes() []string { return []string{"broker/http", "cmd/mainstem", "controller", "protocol"} }

// source is a parsed file of the repository.
type source struct {
	path    string // From the root, with slashes.
	pkg     string // Its folder.
	test    bool
	ours    bool // Of the root module.
	made    bool // Generated.
	text    []byte
	ast     *ast.File
	fset    *token.FileSet
	imports []string
}

func (s *source) line(p token.Pos) int { return s.fset.Position(p).Line }

func repositoryRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(root, "go.mod"))
	return root
}

// files walks what belongs to the repository.
func files(t *testing.T, visit func(name string, text []byte)) {
	t.Helper()
	root := repositoryRoot(t)
	skip := []string{".git", "bin", "mainstem-data", "compat-tests/bench/work"}
	require.NoError(t, filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() {
			if slices.Contains(skip, name) || d.Name() == "node_modules" || d.Name() == "target" {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		visit(name, text)
		return nil
	}))
}

func sources(t *testing.T) []*source {
	t.Helper()
	var out []*source
	files(t, func(name string, text []byte) {
		if !strings.HasSuffix(name, ".go") || strings.Contains(name, "/testdata/") {
			return
		}
		s := &source{
			path: name, pkg: path.Dir(name), text: text, fset: token.NewFileSet(),
			test: strings.HasSuffix(name, "_test.go"), ours: !strings.HasPrefix(name, "compat-tests/"),
		}
		var err error
		s.ast, err = parser.ParseFile(s.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		s.made = ast.IsGenerated(s.ast)
		for _, i := range s.ast.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			require.NoError(t, err)
			s.imports = append(s.imports, p)
		}
		out = append(out, s)
	})
	require.NotEmpty(t, out)
	return out
}

func TestHousePackagesImportOnlyWhatTheyMay(t *testing.T) {
	allowed := arrows()
	for _, s := range sources(t) {
		if !s.ours {
			continue
		}
		may, known := allowed[s.pkg]
		if !known {
			t.Errorf("%s: package %s has no line in arrows()", s.path, s.pkg)
		}
		for _, i := range s.imports {
			target, ours := strings.CutPrefix(i, modulePath+"/")
			if !ours || s.test || target == "protocol/batch" {
				continue
			}
			if !slices.Contains(may, target) {
				t.Errorf("%s imports %s", s.path, target)
			}
		}
	}
}

func TestHouseArrowsHaveNoCircle(t *testing.T) {
	allowed := arrows()
	const open, done = 1, 2
	state := make(map[string]int)
	var walk func(trail []string, pkg string)
	walk = func(trail []string, pkg string) {
		require.NotEqual(t, open, state[pkg], "a circle: %v", append(trail, pkg))
		if state[pkg] == done {
			return
		}
		state[pkg] = open
		for _, next := range allowed[pkg] {
			walk(append(trail, pkg), next)
		}
		state[pkg] = done
	}
	for pkg := range allowed {
		walk(nil, pkg)
	}
}

func TestHouseOutsideThingsHaveAHome(t *testing.T) {
	for _, s := range sources(t) {
		if !s.ours {
			continue
		}
		for _, i := range s.imports {
			for outside, home := range homes() {
				if i != outside && (!strings.HasSuffix(outside, "/") || !strings.HasPrefix(i, outside)) {
					continue
				}
				if s.test && outside != "log" && outside != "log/slog" {
					continue
				}
				if !slices.Contains(home, s.pkg) {
					t.Errorf("%s imports %s", s.path, i)
				}
			}
		}
		if s.test || slices.Contains(socketHomes(), s.pkg) {
			continue
		}
		for _, use := range uses(s, "net") {
			if sockets.MatchString(use.name) {
				t.Errorf("%s:%d uses net.%s", s.path, use.line, use.name)
			}
		}
	}
}

type use struct {
	name string
	line int
}

// uses lists what a file takes from a package that it imports under its own name.
func uses(s *source, pkg string) []use {
	if !slices.Contains(s.imports, pkg) {
		return nil
	}
	var out []use
	ast.Inspect(s.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == path.Base(pkg) {
			out = append(out, use{sel.Sel.Name, s.line(sel.Pos())})
		}
		return true
	})
	return out
}

func TestHouseEveryPackageHasOneDoc(t *testing.T) {
	docs := make(map[string][]string)
	pkgs := make(map[string]bool)
	for _, s := range sources(t) {
		if s.test || !s.ours {
			continue
		}
		pkgs[s.pkg] = true
		if s.ast.Doc != nil {
			docs[s.pkg] = append(docs[s.pkg], path.Base(s.path))
			for _, want := range []string{"Invariants", "Lock order"} {
				if !strings.Contains(s.ast.Doc.Text(), want) {
					t.Errorf("%s has no paragraph %q", s.path, want)
				}
			}
		}
	}
	for pkg := range pkgs {
		if !slices.Equal(docs[pkg], []string{"doc.go"}) {
			t.Errorf("%s has its package doc in %v, not in doc.go alone", pkg, docs[pkg])
		}
	}
}

func TestHouseFilesAndFunctionsStaySmall(t *testing.T) {
	var lengths []int
	for _, s := range sources(t) {
		if s.made {
			continue
		}
		if n := bytes.Count(s.text, []byte("\n")); n > fileCeiling {
			t.Errorf("%s has %d lines, more than %d", s.path, n, fileCeiling)
		}
		for _, d := range s.ast.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			n := s.line(f.End()) - s.line(f.Pos()) + 1
			if n > functionCeiling {
				t.Errorf("%s:%d: %s has %d lines, more than %d", s.path, s.line(f.Pos()), f.Name.Name, n, functionCeiling)
			}
			if !s.test {
				lengths = append(lengths, n)
			}
		}
	}
	slices.Sort(lengths)
	require.LessOrEqual(t, lengths[len(lengths)*95/100], usualFunction, "95 of 100 functions")
}

func TestHouseNobodySleepsInTestsOrHidesAnInit(t *testing.T) {
	for _, s := range sources(t) {
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s:%d: func init", s.path, s.line(f.Pos()))
			}
		}
		if !s.test || !s.ours {
			continue
		}
		for _, u := range uses(s, "time") {
			if u.name == "Sleep" && !slices.Contains(s.imports, "testing/synctest") {
				t.Errorf("%s:%d: a test sleeps", s.path, u.line)
			}
		}
	}
}

// foreign matches paths of somebody's machine. It is put together here so that
// this file does not match.
var foreign = regexp.MustCompile(`(^|[^A-Za-z0-9_.*/-])/(` + strings.Join([]string{"work", "root", "home/[a-z]+", "Users/[A-Za-z]+"}, "|") + `)/`)

func TestHouseNamesNoPathOfAMachine(t *testing.T) {
	files(t, func(name string, text []byte) {
		if bytes.IndexByte(text, 0) >= 0 {
			return
		}
		for i, line := range bytes.Split(text, []byte("\n")) {
			if foreign.Match(line) {
				t.Errorf("%s:%d: %s", name, i+1, bytes.TrimSpace(line))
			}
		}
	})
}
