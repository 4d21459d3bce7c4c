package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
)

// parse reads the file that the order names, in the folder config.folder. A line
// that is not a row of four fields is recorded, and the rest is read.
func parse(job *jobhost.Job, in order) (table, error) {
	folder, _ := job.Config("folder")
	f, err := os.Open(path.Join(folder, path.Base(in.File)))
	if err != nil {
		return table{}, invalid("no_file", err)
	}
	defer f.Close()
	t, err := read(f)
	if err == nil && len(t.Rows) == 0 {
		err = invalid("empty", errNothing)
	}
	return t, err
}

func read(from io.Reader) (table, error) {
	t := table{Unreadable: []problem{}}
	r := csv.NewReader(from)
	r.FieldsPerRecord = -1
	for header := true; ; header = false {
		fields, err := r.Read()
		fault, unreadable := errors.AsType[*csv.ParseError](err)
		switch {
		case errors.Is(err, io.EOF):
			return t, nil
		case unreadable:
			t.Unreadable = append(t.Unreadable, problem{fault.Line, fault.Err.Error()})
			continue
		case err != nil:
			return table{}, err
		case header:
			continue
		}
		line, _ := r.FieldPos(0)
		if len(fields) != 4 {
			t.Unreadable = append(t.Unreadable, problem{line, fmt.Sprintf("%d fields, not 4", len(fields))})
			continue
		}
		t.Rows = append(t.Rows, row{line, fields[0], fields[1], fields[2], fields[3]})
	}
}

// validate says which rows are not to be used, and why.
func validate(_ *jobhost.Job, in table) (verdict, error) {
	v := verdict{Problems: slices.Clone(in.Unreadable)}
	first := map[string]int{}
	for _, r := range in.Rows {
		if why := wrong(r, first); why != "" {
			v.Problems = append(v.Problems, problem{r.Line, why})
			continue
		}
		first[r.Zone] = r.Line
		v.Good++
	}
	slices.SortFunc(v.Problems, func(a, b problem) int { return a.Line - b.Line })
	v.Bad = len(v.Problems)
	return v, nil
}

// wrong returns what is wrong with a row; empty = nothing.
func wrong(r row, first map[string]int) string {
	if len(r.Country) != 2 || strings.ToUpper(r.Country) != r.Country {
		return fmt.Sprintf("%q is not the code of a country", r.Country)
	}
	if !strings.Contains(r.Zone, "/") {
		return fmt.Sprintf("%q is not a time zone", r.Zone)
	}
	if _, _, err := position(r.Coordinates); err != nil {
		return err.Error()
	}
	if line, there := first[r.Zone]; there {
		return fmt.Sprintf("%s is in line %d already", r.Zone, line)
	}
	return ""
}

// summarise counts the rows in the file, good and bad.
func summarise(_ *jobhost.Job, in table) (summary, error) {
	s := summary{Lines: len(in.Rows) + len(in.Unreadable), Areas: map[string]int{}}
	countries := map[string]bool{}
	for _, r := range in.Rows {
		countries[r.Country] = true
		if strings.Contains(r.Zone, "/") {
			s.Areas[area(r.Zone)]++
		}
	}
	s.Countries = len(countries)
	return s, nil
}

// transform makes zones from the valid rows, by area.
func transform(_ *jobhost.Job, in found) (map[string][]zone, error) {
	bad := map[int]bool{}
	for _, p := range in.Validate.Problems {
		bad[p.Line] = true
	}
	areas := map[string][]zone{}
	for _, r := range in.Parse.Rows {
		if bad[r.Line] {
			continue
		}
		latitude, longitude, err := position(r.Coordinates)
		if err != nil {
			return nil, invalid("bad_row", fmt.Errorf("line %d: %w", r.Line, err))
		}
		areas[area(r.Zone)] = append(areas[area(r.Zone)], zone{r.Zone, r.Country, latitude, longitude})
	}
	return areas, nil
}

// store keeps the zones of each area under a key. All keys change together when the
// job succeeds, or none does.
func store(job *jobhost.Job, in ready) (map[string]int, error) {
	stored := map[string]int{}
	for name, zones := range in.Transform {
		value, err := json.Marshal(zones)
		if err != nil {
			return nil, err
		}
		if err := job.KV().Set("area/"+name, value, 0); err != nil {
			return nil, err
		}
		stored[name] = len(zones)
	}
	value, err := json.Marshal(in.Summarise)
	if err != nil {
		return nil, err
	}
	return stored, job.KV().Set("summary", value, 0)
}

func area(zone string) string {
	name, _, _ := strings.Cut(zone, "/")
	return name
}

// position parses coordinates in ISO 6709 form: ±DDMM±DDDMM or ±DDMMSS±DDDMMSS.
func position(text string) (latitude, longitude float64, err error) {
	i := strings.LastIndexAny(text, "+-")
	if i <= 0 {
		return 0, 0, fmt.Errorf("%q are not coordinates", text)
	}
	latitude, err = degrees(text[:i], 2, 90)
	if err == nil {
		longitude, err = degrees(text[i:], 3, 180)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%q are not coordinates: %w", text, err)
	}
	return latitude, longitude, nil
}

// degrees parses a sign, a number of digits of degrees, two of minutes and possibly two of seconds.
func degrees(text string, digits int, most float64) (float64, error) {
	sign, rest := 1.0, text[1:]
	if text[0] == '-' {
		sign = -1
	}
	if text[0] != '-' && text[0] != '+' || len(rest) != digits+2 && len(rest) != digits+4 {
		return 0, fmt.Errorf("%s has not as many digits as it should", text)
	}
	sum, unit := 0.0, 1.0
	for from, to := 0, digits; from < len(rest); from, to = to, to+2 {
		n, err := strconv.ParseUint(rest[from:to], 10, 16)
		if err != nil {
			return 0, fmt.Errorf("%s is not a number", text)
		}
		sum += float64(n) / unit
		unit *= 60
	}
	if sum > most {
		return 0, fmt.Errorf("%s is beyond %g degrees", text, most)
	}
	return sign * math.Round(sum*1e4) / 1e4, nil
}
