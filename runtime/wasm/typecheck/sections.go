package typecheck

import (
	"fmt"

	"github.com/jobhost/jobhost/runtime/module"
)

// The largest possible limit.
const maxPages = 1 << 16

// checkModule checks all sections except the code.
func (c *Checker) checkModule() error {
	for _, check := range []func() error{c.checkMemories, c.checkGlobals, c.checkExports, c.checkStart, c.checkElements, c.checkData} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Checker) checkMemories() error {
	if c.memories > 1 {
		return fmt.Errorf("there are %d memories, more than one", c.memories)
	}
	all := c.m.Memories
	for i := range c.m.Imports {
		if c.m.Imports[i].Kind == module.KindMemory {
			all = append(all[:len(all):len(all)], c.m.Imports[i].Memory)
		}
	}
	for _, l := range all {
		if l.Min > maxPages || l.HasMax && l.Max > maxPages {
			return fmt.Errorf("a memory of more than %d pages is larger than 4 GiB", maxPages)
		}
	}
	return nil
}

// checkGlobals checks the initial values of globals, which may depend on
// imported ones.
func (c *Checker) checkGlobals() error {
	for i := range c.m.Globals {
		if err := c.constant(&c.m.Globals[i].Init, c.m.Globals[i].Type); err != nil {
			return fmt.Errorf("global %d: %w", len(c.globals)+i, err)
		}
	}
	for i := range c.m.Globals {
		c.globals = append(c.globals, c.m.Globals[i].GlobalType)
	}
	return nil
}

func (c *Checker) checkExports() error {
	have := [...]int{
		module.KindFunction: len(c.functions), module.KindTable: len(c.tables),
		module.KindMemory: c.memories, module.KindGlobal: len(c.globals),
	}
	for _, e := range c.m.Exports {
		if int(e.Index) >= have[e.Kind] {
			return fmt.Errorf("an export has the index %d, where there is nothing", e.Index)
		}
		if e.Kind == module.KindFunction {
			c.declared[e.Index] = true
		}
	}
	return nil
}

func (c *Checker) checkStart() error {
	if c.m.Start < 0 {
		return nil
	}
	if c.m.Start >= len(c.functions) {
		return fmt.Errorf("the start function is %d, which there is not", c.m.Start)
	}
	if t := &c.m.Types[c.functions[c.m.Start]]; len(t.Params)+len(t.Results) > 0 {
		return fmt.Errorf("the start function has parameters or results")
	}
	return nil
}

func (c *Checker) checkElements() error {
	for i := range c.m.Elements {
		if err := c.checkElement(&c.m.Elements[i]); err != nil {
			return fmt.Errorf("element segment %d: %w", i, err)
		}
	}
	return nil
}

func (c *Checker) checkElement(e *module.Element) error {
	if e.Mode == module.Active {
		if int(e.Table) >= len(c.tables) {
			return fmt.Errorf("there is no table %d", e.Table)
		}
		if t := c.tables[e.Table]; t != e.Type {
			return fmt.Errorf("its entries are %s, those of table %d are %s", typeName(e.Type), e.Table, typeName(t))
		}
		if err := c.constant(&e.Offset, module.I32); err != nil {
			return err
		}
	}
	for _, f := range e.Functions {
		if err := c.declare(f); err != nil {
			return err
		}
	}
	for i := range e.Exprs {
		if err := c.constant(&e.Exprs[i], e.Type); err != nil {
			return err
		}
	}
	return nil
}

func (c *Checker) checkData() error {
	for i := range c.m.Data {
		d := &c.m.Data[i]
		if d.Mode != module.Active {
			continue
		}
		if int(d.Memory) >= c.memories {
			return fmt.Errorf("data segment %d: there is no memory %d", i, d.Memory)
		}
		if err := c.constant(&d.Offset, module.I32); err != nil {
			return fmt.Errorf("data segment %d: %w", i, err)
		}
	}
	return nil
}

// constant checks a constant expression. While the globals are being checked
// only imported ones are visible.
func (c *Checker) constant(e *module.Const, want byte) error {
	var got byte
	switch op := uint32(e.Op); op {
	case module.GlobalGet:
		imported := uint64(c.m.Imported[module.KindGlobal])
		switch {
		case e.Bits >= imported:
			return fmt.Errorf("a constant expression reads global %d, which is not imported", e.Bits)
		case c.globals[e.Bits].Mutable:
			return fmt.Errorf("a constant expression reads global %d, which is mutable", e.Bits)
		}
		got = c.globals[e.Bits].Type
	case module.RefNull:
		got = byte(e.Bits)
	case module.RefFunc:
		if err := c.declare(uint32(e.Bits)); err != nil {
			return err
		}
		got = module.FuncRef
	case vectorPrefix:
		got = module.V128
	default:
		got = module.Describe(op).Push
	}
	if got != want {
		return fmt.Errorf("a constant expression is %s instead of %s", typeName(got), typeName(want))
	}
	return nil
}

// vectorPrefix is the opcode of v128.const in [module.Const].
const vectorPrefix = 0xfd

// declare records that ref.func may name a function.
func (c *Checker) declare(function uint32) error {
	if int(function) >= len(c.functions) {
		return fmt.Errorf("there is no function %d", function)
	}
	c.declared[function] = true
	return nil
}

// typeName is the name of a type in errors.
func typeName(t byte) string {
	switch t {
	case module.I32:
		return "i32"
	case module.I64:
		return "i64"
	case module.F32:
		return "f32"
	case module.F64:
		return "f64"
	case module.V128:
		return "v128"
	case module.FuncRef:
		return "funcref"
	case module.ExternRef:
		return "externref"
	}
	return "any"
}
