"""Follows a script as it would run: branches, loops, functions, classes, local imports.

Nothing is executed. Each branch is read from the same start, and what differs afterwards may be
either; the body of a loop is read once; a call of a function of the script is followed into it.
What no part of the script calls is read at the end, with parameters of which nothing is known.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from dprime.check import library
from dprime.check.names import Frame, Names, classes
from dprime.check.script import NOTHING, PRIVATE, UNKNOWN, Loop, Occurrence, Script, Value, either
from dprime.check.source import Source

LONGEST = 20_000  # statements that are read at most
DEEPEST = 12  # calls inside calls that are followed

Arguments = dict[str | int, Value]
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


class Reader(Names):
    """One reading of one script."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._active: list[ast.AST] = []
        self._entered: set[ast.AST] = set()
        self._functions: list[Value] = []
        self._classes: list[Value] = []
        self._instances: dict[Value, Value] = {}
        self._count = 0

    def read(self) -> Script:
        """The whole script: first as it runs, then what nobody in it calls."""
        self.block(self.source.tree.body, Frame(self.source))
        returned = []
        for function in self._functions:  # grows while it is read
            self.entry += 1
            if function.node not in self._entered:
                returned.append(self.invoke(function, {}))
        for cls in self._classes:
            self.entry += 1
            made = self._instances.get(cls) or self._instantiate(cls, {})
            for member in [m for (holder, _), m in self.env.items() if holder is cls.frame]:
                if member.role == "function" and member.node not in self._entered:
                    returned.append(self.invoke(member, {}, made))
        cut_short = self._count > LONGEST
        return Script(self.source, self.events, self.libraries, self._forward, returned, cut_short)

    def forward_of(self, network: Value) -> Value | None:
        """The method of the script that runs where an object is called."""
        owner = network.root
        if not isinstance(owner.frame, Value):
            return None
        found = self.member(owner, "forward") or self.member(owner, "__call__")
        return found if found is not None and found.role == "function" else None

    def _forward(self, network: Value) -> Value:
        found, before = self.forward_of(network), list(self.events)
        rows: Arguments = {place: Value("batch", "batch") for place in range(8)}
        made = NOTHING if found is None else self.invoke(found, rows)
        self.events[:] = before
        return made

    # Statements.

    def block(self, body: Sequence[ast.stmt], frame: Frame) -> bool:
        """Read statements in order; whether they end by leaving (return, raise, break)."""
        for node in body:
            self._count += 1
            if self._count > LONGEST or self._statement(node, frame):
                return True
        return False

    def _statement(self, node: ast.stmt, frame: Frame) -> bool:
        match node:
            case ast.Assign() | ast.AnnAssign(value=ast.expr()) | ast.AugAssign():
                self._assign(node, frame)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._define(node, frame)
            case ast.If() | ast.Match() | ast.Try():
                return self._branch(node, frame)
            case ast.For() | ast.AsyncFor():
                self._inside(self._loop(node.target, node.iter, frame), node.body, frame)
                self.block(node.orelse, frame)
            case ast.While():
                loop = Loop(frame.at(node), self._decide(node, frame))
                self._inside(loop, node.body, frame)
            case ast.With() | ast.AsyncWith():
                for entered in node.items:
                    value = self.value(entered.context_expr, frame)
                    if entered.optional_vars is not None:
                        self.bind(entered.optional_vars, value, frame)
                return self.block(node.body, frame)
            case ast.Import() | ast.ImportFrom():
                self.imported(node, frame)
            case ast.Global() | ast.Nonlocal():
                frame.outer.update(node.names)
            case _:
                for child in ast.iter_child_nodes(node):
                    value = self.value(child, frame) if isinstance(child, ast.expr) else NOTHING
                    frame.returned += [value] * isinstance(node, ast.Return)
                return isinstance(node, ast.Return | ast.Raise | ast.Break | ast.Continue)
        return False

    def _assign(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign, frame: Frame) -> None:
        value = self.value(node.value, frame) if node.value is not None else NOTHING
        if isinstance(node, ast.AugAssign):
            before = self.value(node.target, frame)
            value = library.folded(node, [before, value], frame.at(node))
            value.constant = UNKNOWN if self.loops else value.constant
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            self.bind(target, value, frame)

    def bind(self, target: ast.expr, value: Value, frame: Frame) -> None:
        """Give a value to a name, an attribute, or several at once."""
        match target:
            case ast.Name():
                at = self.holder(target.id, frame) if target.id in frame.outer else frame
                self.env[at, target.id] = value
            case ast.Tuple() | ast.List():
                for place, part in enumerate(target.elts):
                    self.bind(part, library.unpacked(value, place, len(target.elts)), frame)
            case ast.Starred():
                self.bind(target.value, value, frame)
            case ast.Attribute():
                base = self.value(target.value, frame)
                self.set(base, target.attr, value, target, frame.at(target))
            case ast.Subscript():
                base, key = self.value(target.value, frame), self.value(target.slice, frame)
                self.note("put", base.name, target, frame.at(target), base, value=value)
                for each in base.each:
                    each.sources.append(value)
                    if isinstance(key.constant, str):
                        each.arguments[key.constant] = value

    def _branch(self, node: ast.If | ast.Match | ast.Try, frame: Frame) -> bool:
        if isinstance(node, ast.Match):
            self.value(node.subject, frame)
            return self._arms([[], *(case.body for case in node.cases)], node, frame)
        if isinstance(node, ast.Try):
            ended = self.block(node.body, frame)
            cut = self._arms([[], *(each.body for each in node.handlers)], node, frame)
            return self.block([*node.orelse, *node.finalbody], frame) or (ended and cut)
        test = self._decide(node, frame)
        assumed = any(each.name == "parameter" for each in test.behind())
        inside = isinstance(node.test, ast.Name | ast.UnaryOp) and frame.parent and not assumed
        if isinstance(test.constant, bool) and (inside or test.name == "__name__"):
            return self.block(node.body if test.constant else node.orelse, frame)
        return self._arms([node.body, node.orelse], node, frame)

    def _decide(self, node: ast.If | ast.While, frame: Frame) -> Value:
        return self.note("decide", "", node, frame.at(node), self.value(node.test, frame)).subject

    def _arms(self, bodies: Sequence[list[ast.stmt]], node: ast.stmt, frame: Frame) -> bool:
        """Read each body from the same start; whether all of them leave."""
        start, tests, path = self.env, self.tests, self.path
        ends = []
        for arm, body in enumerate(bodies):
            self.env, self.path = start.new_child(), (*path, (id(node), arm))
            self.tests = (*tests, node.test) if isinstance(node, ast.If) else tests
            if not self.block(body, frame):
                ends.append(self.env.maps[0])
        self.tests, self.path, self.env = tests, path, start
        for key in dict.fromkeys(key for end in ends for key in end):
            held = [end.get(key) or start.get(key) for end in ends]
            start[key] = either(value for value in held if value is not None)
        return not ends

    def _inside(self, loop: Loop, body: list[ast.stmt], frame: Frame) -> None:
        loop.tests = len(self.tests)
        before, self.loops = self.loops, (*self.loops, loop)
        self.block(body, frame)
        self.loops = before

    def _loop(self, target: ast.expr, over: ast.expr, frame: Frame) -> Loop:
        value = self.value(over, frame)
        loop = Loop(frame.at(over), value, times=library.times(value))
        loop.target = library.elements(value, loop, (*self.loops, loop))
        self.bind(target, loop.target, frame)
        return loop

    def _define(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, frame: Frame
    ) -> None:
        for decorator in node.decorator_list:
            self.value(decorator, frame)
        is_own = frame.source is self.source
        made = Value("function", node.name, frame.at(node), node=node, frame=frame)
        self.env[frame, node.name] = made
        if isinstance(node, ast.ClassDef):
            inner = Frame(frame.source, frame)
            inner.is_class = True
            made.role, made.frame = "class", inner
            made.sources = [self.value(base, frame) for base in node.bases]
            self.block(node.body, inner)
            self._classes += [made] * is_own
        elif not frame.is_class:
            self._functions += [made] * is_own

    def _call(self, node: ast.Call, frame: Frame) -> Value:
        """Follow a call into the script, or note it and ask the library what it gives."""
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return self._super(frame)
        whole = node.func.value if isinstance(node.func, ast.Attribute) else node.func
        subject, attr = self.value(whole, frame), getattr(node.func, "attr", "")
        arguments = self._arguments(node, frame)
        made: list[Value] = []
        called: list[tuple[Value, str]] = []
        for each in subject.each:
            found = self.member(each, attr) if attr else each
            if attr in PRIVATE and each.role == "engine":
                found = None  # an engine of one's own on top of Opacus'
            for target in (each,) if found is None else found.each:
                if found is not None and target.role in ("function", "class"):
                    made.append(self.invoke(target, arguments))
                else:
                    called.append((target, attr if found is None else ""))
        if called:
            joint, attr = either(each for each, _ in called), called[0][1]
            name = f"{joint.name}.{attr}".rstrip(".") if joint.role == "import" else attr
            event = self.note("call", name, node, frame.at(node), joint)
            event.arguments = arguments
            event.result = library.result(self, event, attr)
            made.append(event.result)
        return either(made)

    def _super(self, frame: Frame) -> Value:
        """The base classes, as a method sees them that is in a class of the script."""
        while frame.parent is not None and not frame.parent.is_class:
            frame = frame.parent
        owner = frame.owner
        listed = classes(owner.frame) if owner and isinstance(owner.frame, Value) else []
        here = next((each for each in listed if each.frame is frame.parent), None)
        return Value("super", of=owner, frame=here)

    def _arguments(self, node: ast.Call, frame: Frame) -> Arguments:
        found: Arguments = {}
        for given in node.args:
            value = self.value(given, frame)
            several = value.items if isinstance(given, ast.Starred) else None
            for each in [value] if several is None else several:
                found[len(found)] = each
        for keyword in node.keywords:
            value = self.value(keyword.value, frame)
            if keyword.arg is None and value.role == "dict":
                found |= value.arguments
            else:
                found[keyword.arg or "**"] = value
        return found

    def invoke(self, function: Value, given: Arguments, owner: Value | None = None) -> Value:
        """Follow a call into a function or a class of the script; what it may return."""
        if function.either:
            return either(self.invoke(each, given, owner) for each in function.each)
        if function.role == "class":
            return self._instantiate(function, given)
        node, outside = function.node, function.frame
        assert isinstance(node, Function)
        assert isinstance(outside, Frame)
        if node in self._active or len(self._active) >= DEEPEST:
            return Value("", "recursive", function.place, list(given.values()))
        self._entered.add(node)
        frame = Frame(outside.source, outside, owner or function.of)
        self._parameters(node, given, frame)
        self._active.append(node)
        if isinstance(node, ast.Lambda):
            frame.returned.append(self.value(node.body, frame))
        else:
            self.block(node.body, frame)
        self._active.pop()
        if frame.yielded:
            return Value("generator", function.name, function.place, frame.yielded)
        return either(frame.returned) if frame.returned else Value(constant=None)

    def _parameters(self, node: Function, given: Arguments, frame: Frame) -> None:
        """Bind what a call gives, or the defaults, to the names of a function."""
        listed, outer = [*node.args.posonlyargs, *node.args.args], frame.parent
        assert outer is not None
        decorators = [ast.unparse(each) for each in getattr(node, "decorator_list", ())]
        if frame.owner and outer.is_class and "staticmethod" not in decorators and listed:
            self.env[frame, listed.pop(0).arg] = frame.owner
        values: list[ast.expr | None] = [*node.args.defaults, *node.args.kw_defaults]
        listed += node.args.kwonlyargs
        values = [*[None] * (len(listed) - len(values)), *values]
        rest = dict(given)
        for place, (each, default) in enumerate(zip(listed, values, strict=False)):
            value = rest.pop(each.arg, None) or rest.pop(place, None)
            if value is None and default is not None:
                value = self.value(default, outer)
                if not given:  # perhaps nobody calls it so
                    value = replace(value, name="parameter")
            self.env[frame, each.arg] = value or Value("", "parameter", frame.at(node))
        left = list(rest.values())
        if node.args.vararg:
            self.env[frame, node.args.vararg.arg] = Value("list", "list", sources=left, items=left)
        if node.args.kwarg:
            self.env[frame, node.args.kwarg.arg] = Value("dict", arguments=rest)

    def _instantiate(self, cls: Value, given: Arguments) -> Value:
        names = [each.name for each in cls.behind() if each.role in ("class", "import")]
        roles = [role for each in names if (role := library.role_of(each, library.BASES))]
        role = roles[0] if roles else "object"
        made = Value(role, cls.name, cls.place, loops=self.loops, frame=cls)
        self._instances.setdefault(cls, made)
        start = self.member(made, "__init__")
        if start is not None and start.role == "function":
            self.invoke(start, given)
        else:
            self.env |= {(made, str(name)): each for name, each in given.items()}  # a dataclass
            made.sources += given.values()
        return made

    def tune(self, event: Occurrence) -> None:
        """A library calls the functions that it is given, many times."""
        before, self.loops = self.loops, (*self.loops, Loop(event.place, event.subject, "tuner"))
        for each in list(Value(sources=list(event.arguments.values())).behind()):
            if each.role == "function" and not each.either:
                self.invoke(each, {})
        self.loops = before

    def value(self, node: ast.expr, frame: Frame) -> Value:
        place = frame.at(node)
        made = Value(place=place, loops=self.loops)
        match node:
            case ast.Constant():
                made.constant = node.value
            case ast.Name():
                made = self.name(node.id, frame)
            case ast.Attribute():
                base = self.value(node.value, frame)
                made = either(self._attribute(each, node.attr, frame, node) for each in base.each)
            case ast.Call():
                made = self._call(node, frame)
            case ast.Tuple() | ast.List() | ast.Set():
                made.role = made.name = "list"
                made.items = [self.value(each, frame) for each in node.elts]
                made.sources = list(made.items)
            case ast.Dict():
                made.role = "dict"
                made.sources = [self.value(each, frame) for each in node.values]
                keys = [self.value(key, frame).constant if key else None for key in node.keys]
                listed = zip(keys, made.sources, strict=True)
                made.arguments = {key: each for key, each in listed if isinstance(key, str | int)}
            case ast.Lambda():
                made.role, made.name, made.node, made.frame = "function", "lambda", node, frame
            case ast.Subscript():
                base, key = self.value(node.value, frame), self.value(node.slice, frame)
                made = either(library.item(each, key, place) for each in base.each)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                made = self._comprehension(node, frame)
            case _:
                made = self._operation(node, frame)
        return made

    def _operation(self, node: ast.expr, frame: Frame) -> Value:
        parts = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
        given = [self.value(each, frame) for each in parts]
        match node:
            case ast.IfExp():
                return either(given[1:])
            case ast.NamedExpr():
                self.bind(node.target, given[-1], frame)
                return given[-1]
            case ast.Yield() | ast.YieldFrom():
                frame.yielded += given or [NOTHING]
                return Value(place=frame.at(node))
            case ast.Starred() | ast.Await() | ast.FormattedValue():
                return given[0]
        return library.folded(node, given, frame.at(node))

    def _attribute(self, base: Value, name: str, frame: Frame, node: ast.expr) -> Value:
        found = self.attribute(base, name, frame.at(node))
        decorators = getattr(found.node, "decorator_list", ())
        if found.of and any("property" in ast.unparse(each) for each in decorators):
            return self.invoke(found, {})
        return found

    def _comprehension(self, node: Comprehension, frame: Frame) -> Value:
        inner, before = Frame(frame.source, frame), self.loops
        for each in node.generators:
            loop = self._loop(each.target, each.iter, inner)
            self.loops = (*self.loops, loop)
            for test in each.ifs:
                self.value(test, inner)
        made = self.value(node.value if isinstance(node, ast.DictComp) else node.elt, inner)
        self.loops = before
        return Value("", "comprehension", frame.at(node), [made])
