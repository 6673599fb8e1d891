// SPDX-License-Identifier: Apache-2.0

package openlineage

import "time"

// What events say of themselves. The schema is the one of OpenLineage 2-0-2.
const (
	producer       = "https://github.com/capstan-dev/capstan"
	integration    = "CAPSTAN"
	schemaRunEvent = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
	schemaJobType  = "https://openlineage.io/spec/facets/2-0-3/JobTypeJobFacet.json#/$defs/JobTypeJobFacet"
)

// A Type of an event: what has happened to a run.
type Type string

// Types of events. A run has one Start, and one of the others.
const (
	Start    Type = "START"
	Complete Type = "COMPLETE"
	Fail     Type = "FAIL"
	Abort    Type = "ABORT"
)

// A Processing says whether a run has an end of its own.
type Processing string

// Processings of jobs.
const (
	Batch     Processing = "BATCH"
	Streaming Processing = "STREAMING"
)

// An Event about a run.
type Event struct {
	Type Type
	Time time.Time
	// Run is a UUID.
	Run             string
	Namespace, Job  string
	Processing      Processing
	Inputs, Outputs []Dataset
}

// A Dataset that a run reads or writes.
type Dataset struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// runEvent is an Event on the wire.
type runEvent struct {
	Type      Type      `json:"eventType"`
	Time      string    `json:"eventTime"`
	Producer  string    `json:"producer"`
	SchemaURL string    `json:"schemaURL"`
	Run       run       `json:"run"`
	Job       job       `json:"job"`
	Inputs    []Dataset `json:"inputs,omitempty"`
	Outputs   []Dataset `json:"outputs,omitempty"`
}

type run struct {
	ID string `json:"runId"`
}

type job struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Facets    jobFacets `json:"facets"`
}

type jobFacets struct {
	JobType jobType `json:"jobType"`
}

type jobType struct {
	Producer    string     `json:"_producer"`
	SchemaURL   string     `json:"_schemaURL"`
	Processing  Processing `json:"processingType"`
	Integration string     `json:"integration"`
	JobType     string     `json:"jobType"`
}

func (e Event) wire() runEvent {
	return runEvent{
		Type: e.Type, Time: e.Time.UTC().Format(time.RFC3339), Producer: producer, SchemaURL: schemaRunEvent,
		Run: run{ID: e.Run},
		Job: job{Namespace: e.Namespace, Name: e.Job, Facets: jobFacets{JobType: jobType{
			Producer: producer, SchemaURL: schemaJobType, Processing: e.Processing, Integration: integration, JobType: "JOB",
		}}},
		Inputs: e.Inputs, Outputs: e.Outputs,
	}
}
