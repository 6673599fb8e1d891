// SPDX-License-Identifier: Apache-2.0

// Package mysqlmember is the contract between the function that composes the members of a MySQL Database and the program in their
// image: the file member.json, what members follow at run time, and where things are in the containers. Like package members it
// imports the standard library only, because that program is in every image of a member.
package mysqlmember

import (
	"encoding/json"
	"fmt"
)

// ConfigVersion is the version of Config and Dynamic that this code knows.
const ConfigVersion = 1

// Config is the file member.json: what the program of a member has to know beyond the configuration of its server.
//
// Function and image are upgraded apart, so an old program reads a new file, and a new program reads an old file. A new field is
// therefore optional: its zero value means what the file meant before the field existed, and a program that does not know the field
// may ignore it. Only a change that an old program must not ignore raises ConfigVersion, and programs refuse a higher version than
// their own. A field is never given another meaning.
type Config struct {
	// Version of the file. Default: 1.
	Version int `json:"version,omitempty"`
	// Generation of the Database that the member belongs to, from 1. Server ids and the name of the group follow from it.
	Generation int `json:"generation"`
	// Domain ends the host names of members: the host of pod orders-db-a-0 is orders-db-a-0.<domain>.
	Domain string `json:"domain"`
	// Volumes names the members that had a volume before the Database was created. An empty list means that the Database is new; nil that
	// it is unknown.
	Volumes *[]string `json:"volumes,omitempty"`
}

// ParseConfig understands the content of member.json.
func ParseConfig(raw []byte) (Config, error) {
	var c Config
	if err := json.Unmarshal(raw, &c); err != nil {
		return Config{}, fmt.Errorf("cannot understand the configuration of the member: %w", err)
	}
	if err := known(c.Version); err != nil {
		return Config{}, fmt.Errorf("cannot understand the configuration of the member: %w", err)
	}
	return c, nil
}

// Dynamic is what all members follow at run time. It is kept as JSON in the annotation config of the ConfigMap <scope>-config.
type Dynamic struct {
	// Version of the text. Default: 1.
	Version int `json:"version,omitempty"`
	// Parameters that members set with SET GLOBAL while the server runs, by their names in the server. A parameter that is listed no more
	// goes back to what the file of the server says, or to the server's default.
	Parameters map[string]string `json:"parameters,omitempty"`
}

// ParseDynamic understands the annotation config.
func ParseDynamic(text string) (Dynamic, error) {
	var d Dynamic
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return Dynamic{}, fmt.Errorf("cannot understand what members follow at run time: %w", err)
	}
	if err := known(d.Version); err != nil {
		return Dynamic{}, fmt.Errorf("cannot understand what members follow at run time: %w", err)
	}
	return d, nil
}

func known(version int) error {
	if version > ConfigVersion {
		return fmt.Errorf("it has version %d, and this image knows versions up to %d: use an image of the function's version", version, ConfigVersion)
	}
	return nil
}
