// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

type counts struct {
	Packages, Files, Lines, Code, Comments, Blank int
	// Component is the largest number of files that depend on one another in a circle.
	Component int
	Functions int
	// Type with the most methods, and their number.
	Type    string
	Methods int
}

type pkg struct {
	counts

	// dir below the root.
	dir string
}

// read the packages of both modules below a root.
func read(ctx context.Context, root string) ([]pkg, error) {
	var all []pkg
	for _, module := range []string{root, filepath.Join(root, "hack")} {
		found, err := packages.Load(&packages.Config{
			Context: ctx, Dir: module,
			Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedExportFile,
		}, "./...")
		if err != nil {
			return nil, fmt.Errorf("cannot read the packages of %s: %w", module, err)
		}
		for _, p := range found {
			if len(p.Errors) > 0 {
				return nil, fmt.Errorf("cannot read %s: %w", p.PkgPath, errors.Join(asErrors(p.Errors)...))
			}
			if len(p.GoFiles) == 0 {
				continue
			}
			c, err := count(p)
			if err != nil {
				return nil, err
			}
			all = append(all, pkg{counts: c, dir: within(root, filepath.Dir(p.GoFiles[0]))})
		}
	}
	return all, nil
}

func asErrors(all []packages.Error) []error {
	errs := make([]error, len(all))
	for i, e := range all {
		errs[i] = e
	}
	return errs
}

func count(p *packages.Package) (counts, error) {
	c := counts{Packages: 1}
	methods := map[string]int{}
	uses := map[string]map[string]bool{}
	for _, f := range p.Syntax {
		name := p.Fset.Position(f.Package).Filename
		if ast.IsGenerated(f) || strings.HasPrefix(filepath.Base(name), "zz_") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return c, fmt.Errorf("cannot count lines: %w", err)
		}
		c.Files++
		c.addLines(text)
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			c.Functions++
			if fn.Recv != nil {
				methods[strings.TrimPrefix(types.ExprString(fn.Recv.List[0].Type), "*")]++
			}
		}
		uses[name] = map[string]bool{}
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			o := p.TypesInfo.Uses[id]
			if o == nil || o.Pkg() != p.Types {
				return true
			}
			// Variables of functions are found in their own file only.
			if other := p.Fset.Position(o.Pos()).Filename; other != name && other != "" {
				uses[name][other] = true
			}
			return true
		})
	}
	for t, n := range methods {
		if n > c.Methods || n == c.Methods && t < c.Type {
			c.Type, c.Methods = t, n
		}
	}
	c.Component = largest(uses)
	return c, nil
}

// addLines of a file: those with code, those with comments only, and blank ones.
func (c *counts) addLines(text []byte) {
	total := bytes.Count(text, []byte("\n"))
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	code, comments := map[int]bool{}, map[int]bool{}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue
		}
		lines := code
		if tok == token.COMMENT {
			lines = comments
		}
		first := file.Line(pos)
		for l := first; l <= first+strings.Count(lit, "\n"); l++ {
			lines[l] = true
		}
	}
	only := 0
	for l := range comments {
		if !code[l] {
			only++
		}
	}
	c.Lines += total
	c.Code += len(code)
	c.Comments += only
	c.Blank += total - len(code) - only
}

// largest strongly connected component of a graph (Tarjan's algorithm).
func largest(uses map[string]map[string]bool) int {
	index, low, on := map[string]int{}, map[string]int{}, map[string]bool{}
	var stack []string
	most := 0
	var visit func(string)
	visit = func(v string) {
		index[v] = len(index) + 1
		low[v] = index[v]
		stack, on[v] = append(stack, v), true
		for w := range uses[v] {
			switch {
			case index[w] == 0:
				visit(w)
				low[v] = min(low[v], low[w])
			case on[w]:
				low[v] = min(low[v], index[w])
			}
		}
		if low[v] != index[v] {
			return
		}
		size := 0
		for {
			w := stack[len(stack)-1]
			stack, on[w] = stack[:len(stack)-1], false
			size++
			if w == v {
				break
			}
		}
		most = max(most, size)
	}
	for v := range uses {
		if index[v] == 0 {
			visit(v)
		}
	}
	return most
}
