// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	parameterNames = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	amounts        = regexp.MustCompile(`^([0-9]{1,18})([KMGT])$`)
	numbers        = regexp.MustCompile(`^-?[0-9]{1,19}(\.[0-9]{1,9})?$`)
)

// Set a parameter while the server runs. In a file of the server 16M is a number, and here it is not.
func (s *Server) Set(ctx context.Context, parameters map[string]string) error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if !parameterNames.MatchString(name) {
			problems = append(problems, fmt.Errorf("cannot set %q, which is no name of a parameter", name))
			continue
		}
		problems = append(problems, s.Do(ctx, "set "+name, "SET GLOBAL "+name+" = "+literal(parameters[name])))
	}
	return errors.Join(problems...)
}

// Reset parameters to the server's defaults.
func (s *Server) Reset(ctx context.Context, names []string) error {
	problems := make([]error, 0, len(names))
	for _, name := range names {
		problems = append(problems, s.Do(ctx, "reset "+name, "SET GLOBAL "+name+" = DEFAULT"))
	}
	return errors.Join(problems...)
}

// literal of a value as a file of the server has it.
func literal(value string) string {
	if m := amounts.FindStringSubmatch(strings.ToUpper(value)); m != nil {
		n, err := strconv.ParseInt(m[1], 10, 64)
		shift := map[string]uint{"K": 10, "M": 20, "G": 30, "T": 40}[m[2]]
		if err == nil && n<<shift>>shift == n {
			return strconv.FormatInt(n<<shift, 10)
		}
	}
	if numbers.MatchString(value) {
		return value
	}
	return Text(value)
}

// ask for the only value of a query, and report whether there is one.
func ask[T any](ctx context.Context, c *sql.Conn, into *T, query string, args ...any) (bool, error) {
	err := c.QueryRowContext(ctx, query, args...).Scan(into)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
