// SPDX-License-Identifier: Apache-2.0

package members

import "slices"

// A Query is one whose result is exported as metrics.
type Query struct {
	Name     string `json:"name"`
	Help     string `json:"help,omitempty"`
	Database string `json:"database"`
	SQL      string `json:"sql"`

	// Values and Labels are columns of the result.
	Values []string `json:"values"`
	Labels []string `json:"labels,omitempty"`

	IntervalSeconds int32 `json:"intervalSeconds"`
}

// QueriesReport says how the queries of a member do.
type QueriesReport struct {
	// Failing queries: those that failed twice in a row.
	//
	// +optional
	Failing []QueryFailure `json:"failing,omitempty"`
}

// QueryFailure is why a query fails.
type QueryFailure struct {
	// Name of the query.
	Name string `json:"name"`

	// Message of the server, or what is wrong with the result.
	Message string `json:"message"`
}

// DeepCopyInto another report. It is written by hand because this package has no generated code.
func (r *QueriesReport) DeepCopyInto(out *QueriesReport) {
	out.Failing = slices.Clone(r.Failing)
}

// DeepCopy of a report.
func (r *QueriesReport) DeepCopy() *QueriesReport {
	if r == nil {
		return nil
	}
	out := &QueriesReport{}
	r.DeepCopyInto(out)
	return out
}
