// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
)

// A declaration of a test function.
type declaration struct {
	file     string
	parallel bool
}

// declarations of test functions in a folder, by name.
func declarations(dir string) (map[string]declaration, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, fmt.Errorf("cannot look for tests in %q: %w", dir, err)
	}
	out := map[string]declaration{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("cannot parse a test: %w", err)
		}
		if !built(parsed) {
			continue
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") || f.Name.Name == "TestMain" {
				continue
			}
			out[f.Name.Name] = declaration{file: filepath.Base(file), parallel: callsParallel(f)}
		}
	}
	return out, nil
}

// built says whether the program of e2e tests has a file. Tests that need a cluster in another state, such as one without Capstan, are
// built with a further tag, for a command of their own.
func built(file *ast.File) bool {
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if expr, err := constraint.Parse(comment.Text); err == nil && comment.Pos() < file.Package {
				return expr.Eval(func(tag string) bool { return tag == "e2e" || tag == "linux" })
			}
		}
	}
	return true
}

// callsParallel says whether a statement of the function itself, and not of a subtest, is a call of t.Parallel.
func callsParallel(f *ast.FuncDecl) bool {
	for _, s := range f.Body.List {
		e, ok := s.(*ast.ExprStmt)
		if !ok {
			continue
		}
		call, ok := e.X.(*ast.CallExpr)
		if !ok {
			continue
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Parallel" {
			return true
		}
	}
	return false
}
